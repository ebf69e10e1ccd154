"""Pictures of screens, kept as SVG. One start of the session takes several: another size, another theme, again.

Owns what a scene is, in which sizes and looks it is taken, and when a picture is the one that was accepted. The scenes
themselves stand in `scenes/`, the one table of them in `test_screen_pictures`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from pytest_textual_snapshot import SVGImageExtension, normalize_svg
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot

from dflash_tui.ui.app import DflashApp

from .cockpit import sees

Size = tuple[int, int]
SIZES = LARGE, SMALL = (120, 40), (80, 24)
DARK, LIGHT, NO_COLOUR = "dark", "light", "no-colour"
# How long a screen may take to look as accepted: far more than it needs, for a machine that is busy.
PATIENCE_S = 15.0
# New pictures have nothing to be waited for: by then every panel was asked again.
SETTLED_S = 1.0


@dataclass(frozen=True)
class Scene:
    """What `play` makes of the session that `open` opens. `only` names the pictures taken, where not all are."""

    name: str
    open: Callable[[], AbstractContextManager[DflashApp]]
    play: Callable[[Pilot[None]], Awaitable[None]]
    sizes: tuple[Size, ...] = SIZES
    only: tuple[tuple[Size, str], ...] = ()

    def pictures(self, *looks: str) -> Iterator[tuple[Size, str]]:
        """The sizes and looks it is taken in, of these looks; a look is kept while the size changes."""
        for look in looks:
            yield from ((size, look) for size in self.sizes if not self.only or (size, look) in self.only)


class Album:
    """The accepted pictures of one test, and those taken now that differ: `unlike` names the files to look at."""

    def __init__(self, snapshot: SnapshotAssertion, folder: Path) -> None:
        self._accepted = snapshot.use_extension(SVGImageExtension)
        self._folder = folder
        self.unlike: list[str] = []

    async def take(self, app: DflashApp, pilot: Pilot[None], name: str) -> None:
        file = Path(self._accepted.extension.get_location(test_location=self._accepted.test_location, index=name))
        is_new = self._accepted.update_snapshots or not file.exists()
        accepted = "" if is_new else normalize_svg(file.read_text(encoding="utf-8"))
        clock = asyncio.get_running_loop().time
        deadline = clock() + (SETTLED_S if is_new else PATIENCE_S)
        while (seen := _picture(app)) != accepted and clock() < deadline:
            await pilot.pause(0.05)
        if self._accepted(name=name) != seen:
            taken = self._folder / file.name
            taken.write_text(seen, encoding="utf-8")
            self.unlike.append(f"{taken} is not as {file}")


def _picture(app: DflashApp) -> str:
    return str(normalize_svg(app.export_screenshot(title=app.title, simplify=True)))


async def take_pictures(scene: Scene, album: Album, *looks: str) -> None:
    """Play the scene once, then take it in each size and look."""
    wanted = list(scene.pictures(*looks))
    with scene.open() as app:
        async with app.run_test(size=wanted[0][0], notifications=True) as pilot:
            await scene.play(pilot)
            for size, look in wanted:
                if app.size != size:
                    await pilot.resize_terminal(*size)
                if look != NO_COLOUR and app.theme != f"dflash-{look}":
                    app.theme = f"dflash-{look}"
                await pilot.pause()
                await album.take(app, pilot, f"{size[0]}x{size[1]}-{look}")


def press(*keys: str, until: str, first: str = "0.913") -> Callable[[Pilot[None]], Awaitable[None]]:
    """Once `first` is there press the keys, then wait for `until`."""

    async def play(pilot: Pilot[None]) -> None:
        await sees(pilot, first)
        await pilot.press(*keys)
        await sees(pilot, until)

    return play

"""The palette: every action that can be done now, with its key, and every run by its name.

Actions come from the bindings of the screen below the palette, so that none can be forgotten.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.screen import Screen

from dflash_tui.errors import DflashError
from dflash_tui.runs import Run
from dflash_tui.text import visible
from dflash_tui.ui.messages import RunOpened
from dflash_tui.ui.screen import MainScreen


class Action(NamedTuple):
    """An action of a screen: all its keys as a person reads them, what it does, whether it can be done now."""

    keys: str
    name: str
    does: str
    is_enabled: bool
    run: Callable[[], object]


def actions(screen: Screen[object]) -> list[Action]:
    """Every action of `screen` that says what it does: first those of the footer, then those that move about."""
    app = screen.app
    found: dict[str, Action] = {}
    bindings = [active for active in screen.active_bindings.values() if active.binding.tooltip]
    for node, binding, is_enabled, _ in sorted(bindings, key=lambda active: not active.binding.show):
        key = app.get_key_display(binding)
        name = binding.action.removeprefix("app.")
        if known := found.get(name):
            found[name] = known._replace(keys=known.keys if key in known.keys.split() else f"{known.keys} {key}")
        else:
            run = partial(app.run_action, binding.action, node)
            found[name] = Action(key, binding.description, binding.tooltip, is_enabled, run)
    return list(found.values())


class ActionCommands(Provider):
    async def discover(self) -> Hits:
        for action in self._enabled():
            yield DiscoveryHit(_with_keys(Content(action.name), action), action.run, action.name, action.does)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for action in self._enabled():
            text = f"{action.name}: {action.does}"
            if (score := max(matcher.match(action.name), matcher.match(text) * 0.9)) > 0:
                yield Hit(score, _with_keys(matcher.highlight(action.name), action), action.run, text, action.does)

    def _enabled(self) -> Iterator[Action]:
        return (action for action in actions(self.screen) if action.is_enabled)


class RunCommands(Provider):
    """Opens a run by typing some of its name."""

    async def startup(self) -> None:
        self._runs: list[Run] = []
        if isinstance(self.screen, MainScreen):
            try:
                self._runs = await self.screen.seat.ask(lambda store: store.runs())
            except DflashError:
                return

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for run in self._runs:
            text = f"open {visible(run.name)}"
            if (score := matcher.match(text)) > 0:
                opened = partial(self.screen.post_message, RunOpened(run.run_id))
                yield Hit(score, matcher.highlight(text), opened, text, f"{run.state}, {run.run_id}")


def _with_keys(name: Content, action: Action) -> Content:
    return Content.assemble(name, "  ", (action.keys, "dim"))

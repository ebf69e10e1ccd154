"""The list of runs, the dashboard of one, and what opens over any screen: palette, help, too small a terminal."""

from contextlib import AbstractContextManager, nullcontext

from textual.pilot import Pilot

from dflash_tui.ui import themes
from dflash_tui.ui.app import DflashApp

from ..cockpit import make_app, sees, types
from ..pictures import DARK, LARGE, LIGHT, NO_COLOUR, SIZES, SMALL, Scene, press
from ..scripted_seat import make_run
from ..test_findings import FINDINGS

FLEET = [
    make_run("v5-hardCE-g7-splitfc"),
    make_run("v5-g10", step=3104, age_s=245.0),
    make_run("v4-kl07", step=18_220, no_contact_s=41.0),
    make_run("v3", state="failed", reason="oom-gpu", code=137, step=9871, age_s=273_600.0, no_contact_s=None),
    make_run("demo", host="local", state="finished", reason="completed", step=600, total_steps=600, no_contact_s=None),
    make_run("golden", host=None, kind="ingested", state="absent", total_steps=None, age_s=None, no_contact_s=None),
    make_run("[red]宽\x1b[31m", state="stopped", reason="killed-after-grace", attempt=3, no_contact_s=None),
]
MANY_KEYS = ("j", "j", "space", "k", "space", "G", "p", "s", "s", "s", "s", "g", "j")


TO_THE_PALETTE = press("ctrl+p", until="Open the dashboard")


def fleet() -> AbstractContextManager[DflashApp]:
    app = make_app(FLEET)
    # Something is found of one that goes on, and of the one that failed.
    found = {FLEET[1].run_id: FINDINGS[1:], FLEET[3].run_id: FINDINGS}
    app.seat.store.check = lambda run_id, baseline=None: found.get(run_id, [])  # type: ignore[attr-defined]
    return nullcontext(app)


def fleet_in_light() -> AbstractContextManager[DflashApp]:
    """The palette keeps the colours that it came up in."""
    themes.remember("dflash-light")
    return fleet()


def sick() -> AbstractContextManager[DflashApp]:
    app = make_app([make_run("sick")])
    app.seat.store.findings = FINDINGS  # type: ignore[attr-defined]
    return nullcontext(app)


async def filter_wrongly(pilot: Pilot[None]) -> None:
    await sees(pilot, "0.913")
    await pilot.press("j", "j", "space", "slash")
    await types(pilot, "v hots:gpu2")
    await sees(pilot, "did you mean 'host'?")


async def look_into(pilot: Pilot[None]) -> None:
    """Zoomed, a cursor in all charts, the loss smoothed."""
    await press("enter", until="no findings")(pilot)
    await sees(pilot, "20k")
    await pilot.press("left", *["shift+left"] * 3, "plus", "m")
    await sees(pilot, "zoom 5,674..17,023", "smoothed 0.6")


async def is_too_small(pilot: Pilot[None]) -> None:
    await sees(pilot, "needs 40x10")


SCENES = (
    Scene("runs", fleet, press(*MANY_KEYS, until="seen 2 s ago")),
    Scene("runs-wrong-filter", fleet, filter_wrongly, only=((SMALL, DARK),)),
    Scene("run", fleet, press("enter", until="no findings")),
    Scene("run-looked-into", fleet, look_into, only=((LARGE, DARK), (SMALL, DARK))),
    Scene("run-findings", sick, press("enter", until="→ go back"), only=((LARGE, DARK), (SMALL, DARK))),
    Scene("palette", fleet, TO_THE_PALETTE, only=tuple((size, look) for size in SIZES for look in (DARK, NO_COLOUR))),
    Scene("palette-light", fleet_in_light, TO_THE_PALETTE, only=tuple((size, LIGHT) for size in SIZES)),
    Scene("help", fleet, press("question_mark", until="esc close")),
    Scene("too-small", fleet, is_too_small, sizes=((39, 24), (80, 9))),
)

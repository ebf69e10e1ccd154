"""The Logs screen over a real store: the log with its marks, and what the trainer printed."""

from collections.abc import Iterator
from contextlib import contextmanager

from dflash_tui.ui.app import DflashApp

from ..cockpit import make_app
from ..logged_run import logged_store
from ..pictures import LIGHT, SMALL, Scene, press


@contextmanager
def logged() -> Iterator[DflashApp]:
    with logged_store() as store:
        app = make_app([])
        app.seat.store = store  # type: ignore[attr-defined]
        yield app


TO_THE_MARKS = press("5", "colon", *"#158", "enter", until="attempt 2", first="sick")
TO_THE_LOSS = press("5", "tab", "slash", *"loss", "enter", until="[output]", first="sick")

SCENES = (
    Scene("logs", logged, TO_THE_MARKS),
    Scene("logs-output", logged, TO_THE_LOSS, only=((SMALL, LIGHT),)),
)

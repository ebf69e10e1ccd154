"""What the screens' tests share: cursors that do not blink, and nobody who is asked when a session is over."""

from collections.abc import Iterator

import pytest
from textual.widgets import Input, TextArea

from dflash_tui.hosts.person import introduce


@pytest.fixture(autouse=True)
def no_blinking(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in (Input, TextArea):
        monkeypatch.setattr(field, "cursor_blink", False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "TMUX"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def nobody_stays() -> Iterator[None]:
    yield
    introduce(None)

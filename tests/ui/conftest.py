"""What the screens' tests share: cursors that do not blink."""

import pytest
from textual.widgets import Input, TextArea


@pytest.fixture(autouse=True)
def no_blinking(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in (Input, TextArea):
        monkeypatch.setattr(field, "cursor_blink", False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)

"""What the screens' tests share: cursors that do not blink, and nobody who is asked when a session is over."""

import asyncio
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


@pytest.fixture
def busy_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys do not wait until this process takes no time: beside an endless query that never comes, 2 s a key."""

    async def at_once(min_sleep: float = 0, max_sleep: float = 0) -> None:
        await asyncio.sleep(0)

    for place in ("app", "pilot"):
        monkeypatch.setattr(f"textual.{place}.wait_for_idle", at_once)


@pytest.fixture(autouse=True)
def nobody_stays() -> Iterator[None]:
    yield
    introduce(None)

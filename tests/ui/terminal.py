"""The session in a real terminal, inside tmux: keys go in, the screen comes out as text, and all of it is kept."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PATIENCE_S = 90.0


class Terminal:
    """`log` is a transcript: each key with what it was pressed for, each screen that was waited for."""

    def __init__(self, folder: Path) -> None:
        self.log: list[str] = []
        self._tmux = ["tmux", "-L", "dflash", "-f", "/dev/null"]
        self._env = {**os.environ, "TMUX_TMPDIR": str(folder), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        # The size is the terminal's, not that of whoever runs the tests.
        for name in ("TMUX", "COLUMNS", "LINES"):
            self._env.pop(name, None)

    def start(self, *argv: str, width: int = 120, height: int = 40) -> None:
        size = ["-x", str(width), "-y", str(height)]
        self._run("new-session", "-d", "-s", "main", *size, "--", *argv)
        self._run("set-option", "-t", "main", "remain-on-exit", "on")

    def end(self) -> None:
        self._run("kill-server", check=False)

    def press(self, *keys: str, why: str = "") -> None:
        self.log.append(f">>> {' '.join(keys)}" + (f"    ({why})" if why else ""))
        self._run("send-keys", "-t", "main", *keys)

    def screen(self) -> str:
        return self._run("capture-pane", "-p", "-t", "main")

    def shows(self, *words: str) -> str:
        """Wait until all of `words` are on the screen; the screen."""
        return self.until(lambda screen: all(word in screen for word in words), f"{words}")

    def until(self, condition: Callable[[str], object], what: str) -> str:
        end = time.monotonic() + PATIENCE_S
        while not condition(screen := self.screen()):
            assert time.monotonic() < end, f"never: {what}\n{screen}"
            time.sleep(0.1)
        self.log.append(screen.rstrip("\n"))
        return screen

    def _run(self, *words: str, check: bool = True) -> str:
        done = subprocess.run([*self._tmux, *words], env=self._env, check=check, capture_output=True, text=True)
        return done.stdout


@contextmanager
def terminal(transcript: Path) -> Iterator[Terminal]:
    """A terminal with the session in it; what was seen is in the file `transcript` afterwards."""
    if not shutil.which("tmux"):
        pytest.skip("NO TERMINAL IS TESTED HERE: no tmux: apt-get install tmux, or the like of your system")
    # Not below tmp_path: the path of a socket is short.
    with tempfile.TemporaryDirectory(prefix="dflash-tmux-") as folder:
        one = Terminal(Path(folder))
        one.start(sys.executable, "-m", "dflash_tui")
        try:
            yield one
        finally:
            transcript.write_text("\n\n".join([*one.log, ""]))
            one.end()

"""A command that owns the store while it works: a socket that cannot be, a Ctrl-C before it is there."""

import asyncio
import signal
import socket
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from dflash_tui import paths
from dflash_tui.errors import DflashError
from dflash_tui.store import owner
from dflash_tui.store.access import reader, writer
from dflash_tui.store.client import StoreClient, has_owner
from dflash_tui.store.lock import StoreLock


def nobody_owns_it() -> None:
    assert not has_owner()
    assert "store-owner" not in [thread.name for thread in threading.enumerate()]
    lock = StoreLock.try_take()
    assert lock
    lock.release()


def test_a_socket_folder_that_is_not_ours_alone_is_refused_in_one_sentence() -> None:
    folder = paths.private_dir(paths.socket_file().parent)
    folder.chmod(0o777)
    with pytest.raises(DflashError, match=f"^{folder}: is not a folder of ours alone; remove it"), writer():
        raise AssertionError("the work began on a store that is not served")
    with pytest.raises(DflashError, match=f"^{folder}: is not a folder of ours alone; remove it"):
        reader()
    folder.chmod(0o700)
    nobody_owns_it()
    with writer() as store:
        assert store.runs() == []


def test_nobody_is_asked_at_a_socket_in_a_strangers_folder() -> None:
    folder = paths.private_dir(paths.socket_file().parent)
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(str(paths.socket_file()))
        stranger.listen()
        folder.chmod(0o770)
        with pytest.raises(DflashError, match=f"^{folder}: is not a folder of ours alone"):
            StoreClient().runs()
        stranger.settimeout(0)
        with pytest.raises(BlockingIOError):
            stranger.accept()


@pytest.mark.parametrize("length", [60, 80, 90, 100, 200, 1000])
def test_the_sockets_path_is_short_enough_for_any_home(
    length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = str(tmp_path)
    while len(home) < length:
        home += "/" + "h" * min(100, max(1, length - len(home) - 1))
    monkeypatch.setenv("DFLASH_TUI_HOME", home)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/somewhere/else")
    place = paths.socket_file()
    # macOS has 104 bytes for it, with the NUL behind it; Linux 108.
    assert len(str(place)) < 104
    with writer() as store:
        assert place.exists()
        monkeypatch.delenv("XDG_RUNTIME_DIR")
        with reader() as asking:
            assert asking.runs() == store.runs() == []
    assert not place.exists()
    if not place.is_relative_to(tmp_path):
        with suppress(OSError):
            place.parent.rmdir()


def test_a_home_that_is_reached_by_two_names_has_one_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("h" * 100)
    long.mkdir()
    (tmp_path / ("l" * 100)).symlink_to(long)
    monkeypatch.setenv("DFLASH_TUI_HOME", str(long))
    place = paths.socket_file()
    monkeypatch.setenv("DFLASH_TUI_HOME", str(tmp_path / ("l" * 100)))
    assert paths.socket_file() == place


def test_a_socket_that_cannot_be_made_is_refused_in_one_sentence() -> None:
    # A folder lies where the socket belongs.
    place = paths.socket_file()
    paths.private_dir(place.parent)
    (place / "something").mkdir(parents=True)
    with pytest.raises(DflashError, match=f"^{place}: cannot be served"), writer():
        raise AssertionError("the work began on a store that is not served")
    nobody_owns_it()


def test_a_ctrl_c_before_the_socket_is_there_leaves_no_thread_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    serve, was_told = asyncio.start_unix_server, threading.Event()

    def ctrl_c(number: int, frame: FrameType | None) -> None:
        if not was_told.is_set():
            was_told.set()
            raise KeyboardInterrupt

    def press() -> bool:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return was_told.wait(0.5)

    async def serve_late(accept: Any, place: Path, *, limit: int) -> asyncio.Server:
        # One that comes right before a thread begins to wait is told behind that wait: the next one ends it.
        while not await asyncio.to_thread(press):
            pass
        return await serve(accept, place, limit=limit)

    monkeypatch.setattr(owner.asyncio, "start_unix_server", serve_late)
    before = signal.signal(signal.SIGINT, ctrl_c)
    try:
        with pytest.raises(KeyboardInterrupt), writer():
            raise AssertionError("the work began all the same")
    finally:
        signal.signal(signal.SIGINT, before)
    nobody_owns_it()

"""A command that owns the store while it works: others are answered from a thread of its own."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from dflash_tui import paths
from dflash_tui.errors import DflashError
from dflash_tui.store.interrupts import held, start
from dflash_tui.store.owner import Owner

_LOOK_S = 0.5


@contextmanager
def served(owner: Owner) -> Iterator[None]:
    """`owner` serves until the `with` is left. Errors as of `async with owner`, in the thread of who works here."""
    # Half a loop complains when it is thrown away.
    with held():
        serving = _Serving(owner)
    try:
        serving.begin()
        if not serving.failed:
            yield
    finally:
        serving.end()
    if serving.failed:
        if isinstance(serving.failed, OSError):
            raise DflashError(f"{paths.socket_file()}: cannot be served ({serving.failed})") from serving.failed
        raise serving.failed


class _Serving:
    """The thread, and its loop. `failed` is what ended it though nobody asked it to end."""

    def __init__(self, owner: Owner) -> None:
        self.failed: BaseException | None = None
        self._owner = owner
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._is_serving = threading.Event()
        self._tasks: list[asyncio.Task[Any]] = []
        self._thread = threading.Thread(target=self._run, name="store-owner")

    def begin(self) -> None:
        """Returns when others are answered, or `failed` is set."""
        start(self._thread)
        self._is_serving.wait()

    def end(self) -> None:
        """Leave the store, also one that is still being opened."""
        if self._thread.ident is None:
            self._loop.close()
            self._owner.give_up()
            return
        is_interrupted = False
        while self._thread.is_alive():
            try:
                # A loop that is closed has ended by itself.
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._cancel)
                self._thread.join()
            except KeyboardInterrupt:
                is_interrupted = True
        if is_interrupted:
            raise KeyboardInterrupt

    def _cancel(self) -> None:
        self._stop.set()
        if not self._is_serving.is_set():
            for task in self._tasks:
                task.cancel()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except BaseException as e:  # noqa: BLE001 - raised above, in the thread of who works here
            self.failed = e
        finally:
            self._is_serving.set()

    async def _serve(self) -> None:
        if self._stop.is_set():
            self._owner.give_up()
            return
        self._tasks.extend(filter(None, [asyncio.current_task()]))
        async with self._owner:
            self._is_serving.set()
            # A second Ctrl-C may have hit whoever was about to stop us.
            while not self._stop.is_set() and threading.main_thread().is_alive():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await self._stop.wait()

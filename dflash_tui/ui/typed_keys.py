"""Keys as they are typed: each is handed on when all that the one before has led to is done.

textual gives a key to what has the focus when the key comes, and a change of focus or a new screen comes some messages
after the key that asked for it. What lay behind that key, in one packet, a paste or on a busy machine, would be a
command of the screen that was left.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from textual import events
from textual.app import App, ScreenStackError
from textual.widget import Widget
from textual.worker import WorkerError

OPENING = "opening"
"""The group of workers that open what a key asked for, once they have asked something, or in place of the session."""
# A key goes up to the app; a choice then tells its list, that its field, and that its form, which moves the focus.
NUM_MESSAGES = 4
# A key that has led nowhere by then never will.
PATIENCE_S = 10.0
LEAVE = "ctrl+q"


class TypedKeys:
    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._waiting: asyncio.Queue[events.Event] = asyncio.Queue()
        self._turn: events.Event | None = None

    def holds(self, event: events.Event) -> bool:
        """Whether `event` is one that has to wait; it comes to the app again when it is its turn."""
        if not isinstance(event, events.Key | events.Paste):
            return False
        if not self._app.screen_stack:
            return True  # For ever: the session ends.
        if event.is_forwarded or event is self._turn or (isinstance(event, events.Key) and event.key == LEAVE):
            return False
        self._waiting.put_nowait(event)
        return True

    async def hand_on(self) -> None:
        """Hand on what is typed, as long as the session lasts."""
        while True:
            self._turn = await self._waiting.get()
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await self._give(self._turn)
            except (TimeoutError, WorkerError):
                # What was typed behind it was meant for what it did not open.
                while not self._waiting.empty():
                    self._waiting.get_nowait()
            except ScreenStackError:
                return  # The session ends.

    async def _give(self, event: events.Event) -> None:
        """Give the app its key, and come back when focus and screen are as the key leaves them."""
        took = self._taker
        self._app.post_message(event)
        await _heard(self._app.call_later)
        if isinstance(event, events.Key) and took.check_consume_key(event.key, event.character):
            return  # Text moves no focus.
        num_heard = 0
        while num_heard < NUM_MESSAGES:
            # Messages go from a widget up to the app.
            for node in took.ancestors_with_self:
                await _heard(node.call_later)
            for worker in [worker for worker in self._app.workers if worker.group == OPENING]:
                await asyncio.shield(worker.wait())
            num_heard += 1
            if took is not self._taker:
                took, num_heard = self._taker, 0
                # What tab goes to next is a matter of the places that the fields have.
                await _heard(self._app.screen.call_after_refresh)

    @property
    def _taker(self) -> Widget:
        """What a key would go to now."""
        return self._app.focused or self._app.screen


async def _heard(call: Callable[[Callable[[], None]], bool]) -> None:
    """Wait until whoever is called has done what it had been told before; whoever goes away hears nothing any more."""
    heard = asyncio.Event()
    if call(heard.set):
        await heard.wait()

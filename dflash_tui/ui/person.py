"""The person in front of the session, for what a host must not decide alone: one question at a time, each asked once.

A no is remembered until he does something by hand: hosts that are tried again by themselves ask nothing twice.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from textual.app import App

from dflash_tui.hosts.person import HostKey

if TYPE_CHECKING:
    from dflash_tui.ui.question_screens import QuestionScreen


class SessionPerson:
    """Asks by dialogs of `app`, over whatever is on the screen."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._turn = asyncio.Lock()
        self._trusted: set[HostKey] = set()
        self._refused: set[HostKey | str] = set()

    def reconsider(self) -> None:
        """Ask again what was refused."""
        self._refused.clear()

    async def trusts(self, key: HostKey) -> bool:
        from dflash_tui.ui.question_screens import HostKeyScreen

        async with self._turn:
            # Whoever waited for his turn may have waited for the answer to the same question.
            if key in self._trusted or key in self._refused:
                return key in self._trusted
            is_trusted = await self._ask(HostKeyScreen(key)) is True
            (self._trusted if is_trusted else self._refused).add(key)
            return is_trusted

    async def passphrase(self, key_file: str, *, is_repeated: bool) -> str | None:
        from dflash_tui.ui.question_screens import PassphraseScreen

        async with self._turn:
            if key_file in self._refused:
                return None
            words: str | None = await self._ask(PassphraseScreen(key_file, is_repeated=is_repeated))
            if words is None:
                self._refused.add(key_file)
            return words

    async def _ask(self, screen: "QuestionScreen[Any]") -> Any:
        """What the dialog is dismissed with; None too when the session ends meanwhile, or has ended."""
        if not self._app.is_running:
            return None
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._app.run_worker(self._put(screen, answer), group="questions", exit_on_error=False)
        try:
            return await answer
        except asyncio.CancelledError:
            if screen.is_running:
                screen.withdraw()
            raise

    async def _put(self, screen: "QuestionScreen[Any]", answer: "asyncio.Future[Any]") -> None:
        said = None
        try:
            said = await self._app.push_screen_wait(screen)
        finally:
            if not answer.done():
                answer.set_result(said)

"""The wish to stop. A signal is only noted; the run looks when it stands at a place that it can be continued from."""

import signal
from types import FrameType
from typing import NoReturn

from trainer.errors import Interrupted


class Stop:
    def __init__(self) -> None:
        self.asked = False

    def listen(self) -> None:
        """SIGTERM and SIGINT from now on ask for a stop."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)

    def check(self) -> None:
        """Raises Interrupted if a stop was asked for."""
        if self.asked:
            self.end()

    def end(self) -> NoReturn:
        raise Interrupted(Interrupted.sentence)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True

"""What screens and the app tell each other. Past tense, small, frozen; a level replaces its older self."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from dflash_tui.requests import LaunchRequest
    from dflash_tui.ui.query_subject import QuerySubject


@dataclass
class RunAdvanced(Message):
    """Rows or the state of a run changed; None: the list of runs did."""

    run_id: str | None

    def can_replace(self, message: Message) -> bool:
        """A burst of the same news is one piece of news."""
        return isinstance(message, RunAdvanced) and message.run_id == self.run_id


@dataclass
class RunOpened(Message):
    """A person wants to see this run's dashboard."""

    run_id: str


@dataclass
class RunLeft(Message):
    """A person goes back from a run to the list."""


@dataclass
class LaunchAsked(Message):
    """A person wants this launched at once."""

    request: "LaunchRequest"


@dataclass
class QueryAsked(Message):
    """A person wants to edit the SQL of a panel, with the parameters that it had."""

    sql: str
    subject: "QuerySubject"


@dataclass
class QueryLeft(Message):
    """A person goes back from the Query screen to where it was opened from."""

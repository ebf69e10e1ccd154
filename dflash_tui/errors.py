"""Every error a person can meet, and the exit code it ends a command with.

    DflashError                 1  failed
    ├── UsageError              2  the words of a command, a config file or a recipe are off
    ├── QueryError              2  the SQL is wrong, or not allowed
    ├── StoreBusyError          3  somebody else holds the store
    ├── TimedOutError           4
    └── HostError               1  a machine answered, but not as it should
        └── UnreachableError    5  a machine that we cannot talk to
            ├── LinkLostError   5  ... that we talked to a moment ago
            ├── AuthFailedError 5  ... that does not let us in
            └── HostKeyError    5  ... that may be another one: its key is unknown, or not the one it had
                ├── HostKeyUnknownError
                └── HostKeyChangedError

The text of an error is one sentence: what, where, and what to do next. Nothing here prints.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    BUSY = 3
    TIMEOUT = 4
    UNREACHABLE = 5
    FINDINGS = 6
    INTERRUPTED = 130


class DflashError(Exception):
    exit_code = ExitCode.FAILED


class UsageError(DflashError):
    exit_code = ExitCode.USAGE


class QueryError(DflashError):
    """A query that was refused or is wrong; `column` is where in its text (from 1), if known.

    Who asked may put the text into `statement`, so that the place can be shown.
    """

    exit_code = ExitCode.USAGE

    def __init__(self, message: str, column: int | None = None) -> None:
        super().__init__(message)
        self.column = column
        self.statement: str | None = None


class StoreBusyError(DflashError):
    exit_code = ExitCode.BUSY


class TimedOutError(DflashError):
    exit_code = ExitCode.TIMEOUT


class HostError(DflashError):
    pass


class UnreachableError(HostError):
    exit_code = ExitCode.UNREACHABLE


class LinkLostError(UnreachableError):
    pass


class AuthFailedError(UnreachableError):
    pass


class HostKeyError(UnreachableError):
    """Nothing was said to such a machine. Trying again is of no use before a person has looked at it."""


class HostKeyUnknownError(HostKeyError):
    pass


class HostKeyChangedError(HostKeyError):
    pass

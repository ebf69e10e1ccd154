"""Every error a person can meet in a run: the exit code, and the reason of the log's `end` record.

    RunError                1   error
    ├── ConfigError         2   error       the config, or what it points to, is off
    ├── NonFiniteError      1   nan         the loss or the gradient stays NaN or infinite
    └── Interrupted        75   saved       SIGTERM or SIGINT

The text of an error is one sentence: what, where, and what to do next. Nothing here prints.
"""


class RunError(Exception):
    exit_code = 1
    reason = "error"


class ConfigError(RunError):
    exit_code = 2


class NonFiniteError(RunError):
    reason = "nan"


class Interrupted(RunError):
    exit_code = 75
    reason = "saved"

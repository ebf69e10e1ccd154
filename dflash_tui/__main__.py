"""Where `dflash-tui` and `python -m dflash_tui` begin: a Ctrl-C is no accident, from the first import on."""

import os
import sys
from types import TracebackType


def _end(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """What nobody caught: a Ctrl-C before `cli.main`, or one more while that is leaving, ends us as the first does."""
    # Python up to 3.11 makes a RuntimeError of one that meets a class in the making.
    if isinstance(error, KeyboardInterrupt) or isinstance(error.__cause__, KeyboardInterrupt):
        os._exit(130)
    sys.__excepthook__(kind, error, traceback)


sys.excepthook = _end

from dflash_tui.cli import main  # noqa: E402 - what it imports takes long enough to be interrupted

if __name__ == "__main__":
    main()

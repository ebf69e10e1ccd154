"""The log of a crash: what happened, for the person who mends it. No values of variables: they may hold secrets."""

import platform
import time
import traceback
from pathlib import Path

import textual

from dflash_tui import __version__, paths


def keep_crash(error: BaseException) -> Path:
    """Write the traceback of `error` to a file of ours, and say where. Raises DflashError, OSError."""
    folder = paths.private_dir(paths.data_dir() / "crashes")
    file = folder / time.strftime("%Y%m%d-%H%M%S.log", time.gmtime())
    versions = f"dflash-tui {__version__}, textual {textual.__version__}, python {platform.python_version()}"
    trace = "".join(traceback.format_exception(error))
    file.write_text(f"{versions}, {platform.system()}\n\n{trace}", encoding="utf-8")
    file.chmod(0o600)
    return file

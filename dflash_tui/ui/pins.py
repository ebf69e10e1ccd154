"""The runs that a person has pinned to the top of the list, kept for the next session: one run id a line."""

from collections.abc import Iterable
from pathlib import Path

from dflash_tui import paths
from dflash_tui.runs import is_run_id


def pinned() -> frozenset[str]:
    try:
        lines = _file().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return frozenset()
    return frozenset(filter(is_run_id, lines))


def keep(run_ids: Iterable[str]) -> None:
    """Pin these and no others. Raises OSError."""
    paths.private_dir(paths.data_dir())
    _file().write_text("".join(f"{run_id}\n" for run_id in sorted(run_ids)), encoding="utf-8")


def _file() -> Path:
    return paths.data_dir() / "pinned"

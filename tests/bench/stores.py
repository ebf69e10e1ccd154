"""The stores that are measured: a million steps by our own ingest, ten million made of them by SQL."""

import shutil
from pathlib import Path

from tests.bench.logs import write_log
from tests.bench.rows import MILLION, ask


def log_of(folder: Path, steps: int, shape: str) -> Path:
    """A log of so many steps, written once."""
    return write_log(folder / f"{shape}-{steps}.jsonl", steps, shape)


def store_of(folder: Path, steps: int, shape: str) -> Path:
    """The home of a store with the run `r`, made once."""
    home = folder / f"store-{shape}-{steps}"
    if home.exists():
        return home
    if steps <= MILLION:
        ask("ingest", home, log_of(folder, steps, shape))
        return home
    part = home.with_suffix(".part")
    (part / "data").mkdir(mode=0o700, parents=True)
    million = store_of(folder, MILLION, shape)
    shutil.copy(database_of(million), database_of(part))
    ask("multiply", part, database_of(part), str(steps // MILLION))
    part.rename(home)
    return home


def database_of(home: Path) -> Path:
    return home / "data" / "dflash.duckdb"


def copy_of(home: Path, name: str) -> Path:
    """The database alone in a home of its own, for what may not see or change the other."""
    copy = home.with_name(f"{home.name}-{name}")
    if not copy.exists():
        (copy / "data").mkdir(mode=0o700, parents=True)
        shutil.copy(database_of(home), database_of(copy))
    return copy

"""Whether the store of this machine is well: one finding a check, each with what to do. Looks, and changes nothing."""

import os
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass

from dflash_tui import paths
from dflash_tui.errors import DflashError
from dflash_tui.store import files
from dflash_tui.store.base import Store
from dflash_tui.store.client import StoreClient, has_owner
from dflash_tui.store.database import Database, SchemaVersionError
from dflash_tui.store.engine import duckdb
from dflash_tui.store.guard import REBUILD, query_error
from dflash_tui.store.lines import MAX_LINE_BYTES
from dflash_tui.store.lock import StoreLock, holder
from dflash_tui.store.mirror import TRAIN_LOG, Mirror, mirrored_runs
from dflash_tui.store.opening import busy_error
from dflash_tui.text import data_size, numbered

_MARGIN_BYTES = 200 << 20
# A collector writes the mirror first and the tables a moment later.
_PATIENCE_S = 3.0
_EXTENTS = """
select run, coalesce(any_value(c.generation), 1), coalesce(any_value(c.byte_offset), 0),
  (select count(*) from events e where e.run = r.run)
from registered r left join cursors c using (run) group by run
"""
_TABLES = "select table_name from duckdb_tables() where not internal order by 1"


@dataclass(frozen=True)
class Finding:
    """What a check found of `what`; one that is not well says what to do."""

    what: str
    sentence: str
    is_well: bool = True


def check_store() -> Iterator[Finding]:
    """All checks, one after another, each when it is done."""
    if not paths.data_dir().exists():
        yield Finding("folder", f"{paths.data_dir()} is not there yet: `demo`, `launch` or `ingest` makes it")
        return
    yield _folder()
    yield _disk()
    yield _lock()
    socket = _socket()
    yield socket
    if socket.is_well:
        yield from _database()
    yield _leftovers()


def _folder() -> Finding:
    place = paths.data_dir()
    try:
        paths.check_private(place)
    except DflashError as e:
        return Finding("folder", str(e), False)
    if not os.access(place, os.W_OK | os.X_OK):
        return Finding("folder", f"{place} cannot be written: make it writable for you", False)
    mode = stat.S_IMODE(place.stat().st_mode)
    return Finding("folder", f"{place} is ours alone (mode {mode:o})")


def _disk() -> Finding:
    free = shutil.disk_usage(paths.data_dir()).free
    database = paths.database_file()
    needed = (files.size(database) if database.exists() else 0) + _MARGIN_BYTES
    if free < needed:
        return Finding(
            "disk", f"{data_size(free)} are free, {data_size(needed)} should be: make room on this disk", False
        )
    return Finding("disk", f"{data_size(free)} are free")


def _lock() -> Finding:
    if not StoreLock.is_taken():
        return Finding("lock", "nobody owns the store")
    try:
        is_served = has_owner()
    except DflashError as e:
        return Finding("lock", str(e), False)
    if not is_served:
        return Finding("lock", f"{holder()} owns the store and does not serve it: wait for it, or end it", False)
    return Finding("lock", f"{holder()} owns the store")


def _socket() -> Finding:
    place = paths.socket_file()
    try:
        paths.check_private(place.parent)
    except OSError:
        return Finding("socket", f"none at {place}")
    except DflashError as e:
        return Finding("socket", str(e), False)
    if not place.exists():
        return Finding("socket", f"none at {place}")
    try:
        if not has_owner():
            return Finding("socket", f"{place} is a killed owner's: the next owner removes it")
        begun = time.monotonic()
        StoreClient().runs()
    except DflashError as e:
        return Finding("socket", str(e), False)
    return Finding("socket", f"{place} answers in {1000 * (time.monotonic() - begun):.0f} ms")


def _database() -> Iterator[Finding]:
    place = paths.database_file()
    if not place.exists():
        yield Finding("database", f"{place} is not there: the next command makes it from the mirrors of {_runs()}")
        return
    try:
        # Never as `reader` opens it, which would mend it.
        store = StoreClient() if has_owner() else Database(place, read_only=True)
    except SchemaVersionError as e:
        yield Finding("database", f"{e}: `dflash-tui doctor --rebuild` makes it anew from the mirrors", False)
        return
    except duckdb.Error as e:
        why = busy_error(e) or (
            f"{place} does not open ({str(query_error(e)).removesuffix(REBUILD)}): the next command sets it aside and"
            " makes it anew from the mirrors"
        )
        yield Finding("database", str(why), False)
        return
    except DflashError as e:
        yield Finding("database", str(e), False)
        return
    with store:
        contents = _contents(store)
        yield contents
        if contents.is_well:
            yield _mirrors(store)


def _contents(store: Store) -> Finding:
    """Reads every cell: a damaged block is met by who reads it, not by who opens the file."""
    place = paths.database_file()
    num_rows = 0
    try:
        with store.query(_TABLES) as answer:
            tables = [name for (name,) in answer.rows()]
        for table in tables:
            with store.query(f"select count(*), bit_xor(hash(t)) from {table} t") as answer:  # noqa: S608
                num_rows += answer.rows()[0][0]
    except DflashError as e:
        return Finding("database", f"{place}: {e}", False)
    size = f"{data_size(files.size(place))}: {numbered(num_rows, 'row')} in {len(tables)} tables"
    return Finding("database", f"{place}, {size} can be read")


def _mirrors(store: Store) -> Finding:
    deadline = time.monotonic() + _PATIENCE_S
    try:
        while (behind := _behind(store)) and isinstance(store, StoreClient) and time.monotonic() < deadline:
            time.sleep(0.3)
    except DflashError as e:
        return Finding("mirrors", str(e), False)
    if not behind:
        return Finding("mirrors", f"the tables hold all of {_runs()}")
    told = "; ".join(behind[:3]) + (f"; and {len(behind) - 3} more runs" if len(behind) > 3 else "")
    return Finding("mirrors", told, False)


def _behind(store: Store) -> list[str]:
    with store.query(_EXTENTS) as answer:
        known = {run: tuple(extent) for run, *extent in answer.rows()}
    mirrored = mirrored_runs()
    told = [
        f"run {run} has no mirror, and a rebuild would drop it: put {Mirror(run).folder} back, if you can"
        for run in sorted(known.keys() - mirrored)
    ]
    for run_id in mirrored:
        try:
            Mirror(run_id).read_record()
        except DflashError as e:
            told.append(str(e))
            continue
        generation, num_bytes, num_events = Mirror(run_id).extent()
        whole = (generation, _end_of_lines(Mirror(run_id), known.get(run_id, (0, 0, 0))[1]), num_events)
        if run_id not in known or known[run_id] != whole:
            told.append(
                f"run {run_id} is not all in the tables ({numbered(num_bytes, 'byte')} in its mirror): the next command"
                " that owns the store takes it in"
            )
    return told


def _end_of_lines(mirror: Mirror, byte_offset: int) -> int:
    """Where the last whole line of the newest generation ends: what stands behind it is held back."""
    try:
        with mirror.path(TRAIN_LOG).open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            if byte_offset > size:
                return size
            log.seek(byte_offset)
            return byte_offset + log.read(MAX_LINE_BYTES).rfind(b"\n") + 1
    except FileNotFoundError:
        return 0


def _leftovers() -> Finding:
    place = paths.database_file()
    aside = sorted(files.those_aside(place).values())
    if aside:
        num_bytes = sum(files.size(file) for file in aside)
        names = ", ".join(file.name for file in aside)
        sentence = (
            f"{names} ({data_size(num_bytes)}) once did not open and were made anew: delete them, nothing needs them"
        )
        return Finding("leftovers", sentence, False)
    if StoreLock.is_taken():
        return Finding("leftovers", "none but what its owner works on")
    spilled = [place for place in (files.fresh_place(), files.spill_folder(place)) if place.exists()]
    parts = list(paths.mirrors_dir().rglob(".*.part"))
    if spilled or parts:
        names = ", ".join(file.name for file in [*spilled, *parts[:3]])
        return Finding(
            "leftovers", f"{names} of what was killed at its work: they are in nobody's way, and go by and by"
        )
    return Finding("leftovers", "none")


def _runs() -> str:
    return numbered(len(mirrored_runs()), "run")

"""The tables `runs`, `events` and `gpus`: what is known of runs beside their logs. The same facts lie in the mirrors.

Plain statements on a connection that the caller chose; no transaction begins or ends here.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from typing import Any

import msgspec

from dflash_tui.errors import UsageError
from dflash_tui.runs import GpuSample, Run, RunEvent, RunRecord, RunState
from dflash_tui.store.base import NEVER_CUT, AttemptRow, RunDetail
from dflash_tui.store.engine import duckdb
from dflash_tui.store.logged import TABLES

_RECORD = "run, name, kind, host, path, log, created, parent, code_hash, config"
_RUN = "run, name, kind, host, state, reason, code, signal, attempt, last_step, total_steps, created, contact"


def put_run(db: duckdb.DuckDBPyConnection, record: RunRecord) -> None:
    """Add a run, or replace what was known of it; its state stays."""
    config = None if record.config is None else msgspec.json.encode(record.config).decode()
    values = [record.run_id, record.name, record.kind, record.host, record.path, record.log, record.created]
    values += [record.parent, record.code_hash, config]
    if has_run(db, record.run_id):
        db.execute(
            "update registered set name = $2, kind = $3, host = $4, path = $5, log = $6, created = $7, parent = $8,"
            " code_hash = $9, config = $10 where run = $1",
            values,
        )
    else:
        marks = ", ".join(f"${n}" for n in range(1, 11))
        db.execute(f"insert into registered ({_RECORD}, state) values ({marks}, 'absent')", values)  # noqa: S608


def put_event(db: duckdb.DuckDBPyConnection, run_id: str, event: RunEvent) -> None:
    """Add an event; one of a state is how the run stands from now on."""
    values: list[Any] = [run_id, event.time, event.kind, event.state, event.reason]
    values += [event.code, event.signal, event.attempt, event.pid, event.text]
    db.execute("insert into events values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)", values)
    if event.kind != "state" or event.state is None:
        return
    state = _state(event.state)
    is_over = state is not None and state.is_over
    db.execute(
        "update registered set state = $2, reason = $3, code = $4, signal = $5, attempt = coalesce($6, attempt),"
        " pid = case when $8 then null else coalesce($7, pid) end,"
        " state_since = case when state = $2 and coalesce($6, attempt) is not distinct from attempt"
        " then coalesce(state_since, $9) else $9 end where run = $1",
        [run_id, event.state, event.reason, event.code, event.signal, event.attempt, event.pid, is_over, event.time],
    )


def replace_events(db: duckdb.DuckDBPyConnection, run_id: str, events: Iterable[RunEvent]) -> None:
    """Make the run's events, and the state that they end in, those of its mirror."""
    db.execute("delete from events where run = $1", [run_id])
    for event in events:
        put_event(db, run_id, event)


def put_gpus(db: duckdb.DuckDBPyConnection, run_id: str, samples: Sequence[GpuSample]) -> None:
    columns = [list(column) for column in zip(*map(astuple, samples), strict=True)]
    if columns:
        kinds = ["double", "integer", "varchar", *["double"] * (len(columns) - 3)]
        values = ", ".join(f"unnest(${n}::{kind}[])" for n, kind in enumerate(kinds, 2))
        db.execute(f"insert into gpus select $1, {values}", [run_id, *columns])


def forget_run(db: duckdb.DuckDBPyConnection, run_id: str) -> None:
    """Take out all that the tables hold of a run."""
    for table in (*TABLES, "rejects", "attempts", "keys", "cursors", "events", "gpus", "registered"):
        db.execute(f"delete from {table} where run = $1", [run_id])  # noqa: S608 - names of our own


def _state(text: str) -> RunState | None:
    return RunState(text) if text in {*RunState} else None


def has_run(db: duckdb.DuckDBPyConnection, run_id: str) -> bool:
    return bool(db.execute("select 1 from registered where run = $1", [run_id]).fetchall())


def list_runs(db: duckdb.DuckDBPyConnection, run_id: str | None = None) -> list[Run]:
    """Every run, the newest first; or the one with this id."""
    rows = db.execute(
        f"select {_RUN} from runs where run = coalesce($1, run) order by created desc nulls last, run",  # noqa: S608
        [run_id],
    ).fetchall()
    now = time.time()
    return [_run(row, now) for row in rows]


def extents(db: duckdb.DuckDBPyConnection) -> dict[str, tuple[int, int, int]]:
    """How much of each run is in the tables, as `Mirror.extent` has it."""
    rows = db.execute(
        "select run, coalesce(any_value(c.generation), 1), coalesce(any_value(c.byte_offset), 0), count(e.kind)"
        " from registered left join cursors c using (run) left join events e using (run) group by run"
    ).fetchall()
    return {run: (generation, byte_offset, num_events) for run, generation, byte_offset, num_events in rows}


def _run(row: tuple[Any, ...], now: float) -> Run:
    run_id, name, kind, host, state, reason, code, signal, attempt, step, total_steps, created, contact = row
    age_s = None if created is None else max(0.0, now - created)
    # Silence says something only of a run that may still live, on a host.
    known = _state(state)
    may_live = host is not None and known is not None and not known.is_over and known != RunState.ABSENT
    silent_s = max(0.0, now - contact) if may_live and contact is not None else None
    return Run(run_id, name, kind, host, state, reason, code, signal, attempt, step, total_steps, age_s, silent_s)


def detail_of(db: duckdb.DuckDBPyConnection, run_id: str) -> RunDetail:
    """UsageError when there is no such run."""
    rows = db.execute(
        f"select {_RECORD}, pid, state_since from runs where run = $1",  # noqa: S608
        [run_id],
    ).fetchall()
    if not rows:
        raise UsageError(f"there is no run {run_id!r} in the store")
    name, kind, host, path, log, created, parent, code_hash, config, pid, state_since = rows[0][1:]
    config = None if config is None else msgspec.json.decode(config)
    record = RunRecord(run_id, name, kind, host, path, log, created, parent, code_hash, config)
    [run] = list_runs(db, run_id)
    attempts = db.execute(
        "select attempt, generation, first_line, first_step, nullif(cut_step, $2), started, resumed_from_step"
        " from attempts where run = $1 order by attempt",
        [run_id, NEVER_CUT],
    ).fetchall()
    note = db.execute(
        "select text from events where run = $1 and kind = 'state' order by rowid desc limit 1", [run_id]
    ).fetchone()
    return RunDetail(run, record, pid, state_since, [AttemptRow(*row) for row in attempts], note[0] if note else None)

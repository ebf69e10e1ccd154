"""Any log, cut anywhere and read at any moments, ends up in the tables as plain Python reads it, once each."""

import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dflash_tui import paths
from dflash_tui.runs import RunRecord
from dflash_tui.store import rows
from dflash_tui.store.database import Database
from dflash_tui.store.mirror import Mirror

from .conftest import grow, rows_of
from .plain_reader import attempts, counted_steps, read

_ids = itertools.count()

numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, width=32)
odd_values = (
    st.none()
    | st.booleans()
    | st.just(math.nan)
    | st.just("1e-4")
    | st.just("abc")
    | st.just("NaN")
    | st.just({"a": {"b": 1}})
    | st.just(2**70)
)
steps = st.integers(0, 12) | st.sampled_from([10.0, "7", None, 2.5, True])
plain = st.fixed_dictionaries(
    {"step": st.integers(0, 30), "loss": numbers},
    optional={
        "epoch": st.integers(0, 3),
        "lr": numbers,
        "event": st.just("train"),
        "grad_clipped": st.booleans(),
        "position_acc": st.lists(st.floats(0, 1, width=32), max_size=3),
        "seen_tokens": st.integers(0, 10**6),
    },
)
odd = st.dictionaries(
    st.sampled_from(["loss", "Loss", "lr", "learning_rate", "grad_norm", "memo", "grad_clipped", "a b", 'q"\\']),
    numbers | odd_values,
    max_size=4,
).flatmap(
    lambda cells: st.tuples(st.just(cells), st.sampled_from(["step", "global_step", "iter"]), steps).map(
        lambda t: {t[1]: t[2], **t[0]}
    )
)
events = st.sampled_from(
    [{"event": "start", "config": {"total_steps": 9}}, {"event": "eval", "step": 3, "eval_loss": 2.0}, {"event": "end"}]
)
raw = st.sampled_from(
    [
        b"",
        b"  ",
        b"garbage",
        b'{"step": 1,}',
        b"[1]",
        b'{"step": 3, "loss"',
        b'{"step": 2, "note": "\xff"}',
        b"\x00",
        b'{"step":4,"loss":1.0,"loss":2.0}',
    ]
)


def as_line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode()


log_lines = st.lists(
    st.tuples(
        st.one_of(plain.map(as_line), plain.map(as_line), odd.map(as_line), events.map(as_line), raw),
        st.sampled_from([b"\n", b"\n", b"\r\n"]),
    ),
    max_size=25,
).map(lambda parts: b"".join(line + end for line, end in parts))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    home = tmp_path_factory.mktemp("shared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DFLASH_TUI_HOME", str(home))
        paths.private_dir(paths.data_dir())
        with Database(paths.database_file()) as database:
            yield database


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    return bool(a == b) and type(a) is type(b)


@pytest.mark.parametrize("few_lines", [1, 256])
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    data=log_lines,
    tail=st.binary(max_size=5).filter(lambda b: b"\n" not in b),
    cuts=st.lists(st.integers(0, 2000), max_size=4),
)
def test_the_tables_hold_what_plain_python_reads(
    shared: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    few_lines: int,
    data: bytes,
    tail: bytes,
    cuts: list[int],
) -> None:
    monkeypatch.setenv("DFLASH_TUI_HOME", str(shared.path.parent.parent))
    # What is odd is found by halves, down to a single line, or read with its neighbours.
    monkeypatch.setattr(rows, "FEW_LINES", few_lines)
    run_id = f"run-{next(_ids)}"
    shared.register_run(RunRecord(run_id, run_id, "ingested"))
    whole = data + tail
    places = sorted({min(cut, len(whole)) for cut in cuts} | {0, len(whole)})
    summaries = []
    for begin, end in itertools.pairwise(places):
        grow(run_id, whole[begin:end])
        summaries.append(shared.take_in(run_id))
    right, refused = read(whole)
    check_rows(shared, run_id, right)
    assert [
        no for (no,) in rows_of(shared, "select line_no from rejects where run = $run order by 1", run=run_id)
    ] == refused
    assert sum(found.rows for found in summaries) == len(right)
    assert sum(found.rejects for found in summaries) == len(refused)
    check_attempts(shared, run_id, right)
    if summaries:
        assert summaries[-1].held_back_bytes == len(tail) if data else len(whole)
        assert Mirror(run_id).path("train_log.jsonl").read_bytes() == whole


def check_rows(store: Database, run_id: str, right: list[dict[str, Any]], generation: int = 1) -> None:
    stored = rows_of(
        store,
        "select line_no, event, step, loss, grad_norm, epoch, lr, grad_clipped, position_acc, extra from records"
        " where run = $run and generation = $generation order by line_no",
        run=run_id,
        generation=generation,
    )
    assert len(stored) == len(right)
    for cells, (line_no, event, step, loss, grad_norm, epoch, lr, clipped, position_acc, extra) in zip(
        right, stored, strict=True
    ):
        assert (line_no, event, step) == (cells["line_no"], cells["event"], cells["step"]), cells
        for name, value in (("loss", loss), ("grad_norm", grad_norm), ("epoch", epoch), ("lr", lr)):
            assert same(cells[name], value), (name, cells)
        assert same(cells["grad_clipped"], clipped)
        assert cells["position_acc"] == position_acc
        kept = json.loads(extra) if extra else {}
        for key, value in cells["unknown"].items():
            assert key in kept
            if not (isinstance(value, float) and not math.isfinite(value)):
                assert kept[key] == value


def check_attempts(store: Database, run_id: str, right: list[dict[str, Any]]) -> None:
    if not right:
        return
    stored = rows_of(store, "select first_line, first_step from attempts where run = $run order by attempt", run=run_id)
    assert stored == attempts(right)
    counted = rows_of(
        store, "select step from steps where run = $run and step is not null order by line_no", run=run_id
    )
    assert [step for (step,) in counted] == counted_steps(right)

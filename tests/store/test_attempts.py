"""The rules of a resume, one by one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.runs import RunRecord
from dflash_tui.store import rows
from dflash_tui.store.database import Database

from .conftest import Rows, grow

Ask = Callable[..., Rows]
Attempts = Callable[[list[dict[str, Any]]], Rows]

START = {"event": "start", "config": {"total_steps": 100}}
NEVER = 2**63 - 1


def train(*steps: int, **cells: Any) -> list[dict[str, Any]]:
    return [{"step": step, "loss": 1.0, **cells} for step in steps]


@pytest.fixture(params=["at once", "by threes", "line by line"])
def attempts(database: Database, ask: Ask, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Attempts:
    """The attempts of a log: first line, first step, cut. It makes no difference how the log arrives."""
    if request.param != "line by line":
        monkeypatch.setattr(rows, "FEW_LINES", 0)

    def of(log: list[dict[str, Any]]) -> Rows:
        database.register_run(RunRecord("r", "r", "train"))
        lines = [json.dumps(row).encode() + b"\n" for row in log]
        size = {"at once": len(lines), "by threes": 3, "line by line": 1}[request.param]
        for begin in range(0, len(lines), size):
            grow("r", b"".join(lines[begin : begin + size]))
            database.take_in("r")
        return ask("select first_line, first_step, cut_step from attempts order by attempt")

    return of


def test_a_step_seen_before_begins_an_attempt(attempts: Attempts, ask: Ask) -> None:
    assert attempts(train(1, 2, 3, 4, 5, 3, 4, 5, 6, 4, 5)) == [(1, 1, 3), (6, 3, 4), (10, 4, NEVER)]
    assert ask("select step, attempt from steps order by step") == [(1, 1), (2, 1), (3, 2), (4, 3), (5, 3)]
    assert ask("select attempt, count(*) from records group by 1 order by 1") == [(1, 5), (2, 4), (3, 2)]


def test_a_resume_further_back_voids_all_that_is_later(attempts: Attempts, ask: Ask) -> None:
    assert attempts(train(1, 2, 3, 4, 3, 4, 5, 2, 3)) == [(1, 1, 2), (5, 3, 2), (8, 2, NEVER)]
    assert ask("select step, attempt from steps order by step") == [(1, 1), (2, 3), (3, 3)]


def test_the_same_step_again_is_a_resume(attempts: Attempts) -> None:
    assert attempts(train(1, 2, 3, 4, 4, 5)) == [(1, 1, 4), (5, 4, NEVER)]


def test_a_gap_is_none(attempts: Attempts) -> None:
    assert attempts(train(1, 2, 50, 51)) == [(1, 1, NEVER)]


def test_a_later_epoch_means_that_a_counter_restarted(attempts: Attempts) -> None:
    assert attempts([*train(1, 2, 3, epoch=1), *train(1, 2, 3, epoch=2)]) == [(1, 1, NEVER)]


def test_a_resume_within_an_epoch_is_one(attempts: Attempts) -> None:
    assert attempts([*train(1, 2, 3, epoch=1), *train(2, 3, epoch=1)]) == [(1, 1, 2), (4, 2, NEVER)]


def test_a_second_start_begins_an_attempt_and_its_first_step_says_where(attempts: Attempts) -> None:
    log = [START, *train(1, 2, 3), {**START, "resumed_from_step": 4}, {"event": "eval", "step": 2}, *train(5, 6)]
    assert attempts(log) == [(1, 1, 5), (5, 5, NEVER)]


def test_two_starts_without_a_step_between_make_one_attempt(attempts: Attempts, ask: Ask) -> None:
    log = [START, START, *train(1, 2), START, {**START, "resumed_from_step": 1, "time": 9.0}, *train(2)]
    assert attempts(log) == [(1, 1, 2), (5, 2, NEVER)]
    assert ask("select resumed_from_step, started from attempts where attempt = 2") == [(1, 9.0)]


def test_only_the_start_of_rank_0_is_a_resume(attempts: Attempts, database: Database, ask: Ask) -> None:
    others = [{**START, "rank": rank} for rank in (1, 2)]
    log = [{**START, "rank": 0}, *train(1, rank=0), *others, *train(2, rank=0), {**START, "rank": -1}, *train(3)]
    assert attempts(log) == [(1, 1, 3), (6, 3, NEVER)]
    database.forget("r")
    assert attempts(log) == [(1, 1, 3), (6, 3, NEVER)]
    assert ask("select step, attempt from steps order by step") == [(1, 1), (2, 1), (3, 2)]


def test_rows_of_a_run_without_ranks_are_of_rank_0(attempts: Attempts, ask: Ask) -> None:
    log = [cells for step in (1, 2, 3) for cells in train(step, local_rank=-1)]
    slow = {"event": "note", "local_rank": -1, "text": "of the slow path"}
    assert attempts([*log, slow]) == [(1, 1, NEVER)]
    assert ask("select step, rank from steps order by step") == [(1, 0), (2, 0), (3, 0)]
    assert ask("select rank, extra from records where event = 'note'") == [(0, '{"text":"of the slow path"}')]


@pytest.mark.parametrize("total_steps", [100, 100.0, "100", " 1e2 "])
def test_planned_steps_are_understood_as_any_number_is(attempts: Attempts, ask: Ask, total_steps: Any) -> None:
    attempts([{"event": "start", "config": {"total_steps": total_steps}}, *train(1)])
    assert ask("select total_steps from runs") == [(100,)]


def test_a_late_evaluation_is_no_resume(attempts: Attempts, ask: Ask) -> None:
    log = [*train(1, 2, 3), {"event": "eval", "step": 1, "eval_loss": 2.0}, {"eval_loss": 3.0, "step": 2}, *train(4)]
    assert attempts(log) == [(1, 1, NEVER)]
    assert ask("select step, eval_loss from evals order by step") == [(1, 2.0), (2, 3.0)]


def test_rows_of_other_ranks_neither_count_nor_resume(attempts: Attempts, ask: Ask) -> None:
    log = [cells for step in (1, 2, 3) for rank in (0, 1) for cells in train(step, rank=rank)]
    assert attempts(log) == [(1, 1, NEVER)]
    assert ask("select step, rank from steps order by step") == [(1, 0), (2, 0), (3, 0)]


def test_evaluations_of_a_voided_stretch_are_void(attempts: Attempts, ask: Ask) -> None:
    evals = [{"event": "eval", "step": step, "tau_linear_macro": tau} for step, tau in ((2, 1.0), (4, 2.0))]
    attempts([*train(1, 2), evals[0], *train(3, 4), evals[1], *train(3, 4)])
    assert ask("select step, tau_linear_macro from evals") == [(2, 1.0)]


def test_rows_without_a_step_are_always_kept(attempts: Attempts, ask: Ask) -> None:
    assert attempts([{"loss": 1.0}, *train(1, 2, 1), {"loss": 2.0}]) == [(1, 1, 1), (4, 1, NEVER)]
    assert ask("select count(*) from steps where step is null") == [(2,)]


def test_ten_thousand_resumes_are_no_matter(database: Database, ask: Ask, tmp_path: Path) -> None:
    # Two processes without ranks wrote one log: every second row goes back.
    log = tmp_path / "a.jsonl"
    log.write_text("".join(f'{{"step": {step}, "loss": {k}.5}}\n' for step in range(10_000) for k in (0, 1)))
    assert database.ingest("a", log).attempts == 10_001
    assert ask("select count(*), min(loss), max(loss) from steps") == [(10_000, 1.5, 1.5)]

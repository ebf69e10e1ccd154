"""The public failure cases of ingest, with their right values."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dflash_tui.errors import UsageError
from dflash_tui.runs import RunRecord
from dflash_tui.store.database import Database
from dflash_tui.store.mirror import TRAIN_LOG, Mirror

from .conftest import Rows, expected, grow, rows_of

Ask = Callable[..., Rows]
pytestmark = pytest.mark.usefixtures("few_lines")


def test_case01_nan_tokens_are_kept_and_counted(database: Database, ask: Ask, cases: Path) -> None:
    right = expected(cases, "case01_nan_tokens")
    summary = database.ingest("a", cases / "case01_nan_tokens.jsonl")
    assert (summary.rows, summary.rejects, summary.last_step) == (right["rows"], right["rejected"], right["last_step"])
    for name in ("loss", "grad_norm"):
        counts = ask(
            f"select count(*) filter (isfinite({name})), count(*) filter (isnan({name})),"
            f" count(*) filter ({name} = 'inf'), count(*) filter ({name} = '-inf'),"
            f" avg({name}) filter (isfinite({name})), max({name}) filter (isfinite({name})) from steps"
        )
        want = right[name]
        assert counts[0][:4] == tuple(want[key] for key in ("n_finite", "n_nan", "n_posinf", "n_neginf"))
        assert counts[0][4:] == pytest.approx((want["mean"], want["max"]), rel=1e-9)


def test_words_for_what_is_not_finite_are_the_same_values(database: Database, ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"step": 1, "loss": "NaN", "lr": "Infinity", "grad_norm": "-Infinity"}\n')
    database.ingest("a", tmp_path / "a.jsonl")
    assert ask("select isnan(loss), lr = 'inf'::double, grad_norm = '-inf'::double from steps") == [(True, True, True)]


def test_case06_a_resume_voids_what_came_after_it(database: Database, ask: Ask, cases: Path) -> None:
    right = expected(cases, "case06_resume_overlap")
    summary = database.ingest("a", cases / "case06_resume_overlap.jsonl")
    assert (summary.rows, summary.attempts) == (right["raw_rows"], right["attempts"])
    assert ask("select step, loss from steps order by step") == [tuple(point) for point in right["canonical"]]
    assert ask("select count(*) from records") == [(right["raw_rows"],)]
    [first, second] = ask("select attempt, first_line, first_step, cut_step from attempts order by attempt")
    assert (first[3], second[2]) == (110, 110)
    assert second[1] == 16


def test_case07_a_half_line_waits_for_its_rest(database: Database, ask: Ask, cases: Path) -> None:
    right = expected(cases, "case07_partial_line")
    database.register_run(RunRecord("a", "a", "adopted"))
    for part, after in (("part1", right["after_part1"]), ("part2", right["after_part2"])):
        grow("a", (cases / f"case07_partial_line_{part}.bin").read_bytes())
        summary = database.take_in("a")
        assert ask("select count(*) from records") == [(after["rows"],)]
        assert (summary.rejects, summary.held_back_bytes) == (after["rejected"], after["pending_bytes"])
    assert ask("select loss, extra->>'note' from records where step = 6") == [
        (1.25, right["after_part2"]["note_step6"])
    ]


def test_case08_glued_objects_are_records_and_shreds_are_rejects(database: Database, ask: Ask, cases: Path) -> None:
    right = expected(cases, "case08_concat_interleaved")
    summary = database.ingest("a", cases / "case08_concat_interleaved.jsonl")
    assert [step for (step,) in ask("select step from steps order by step")] == right["steps"]
    [(line_no, offset, line)] = ask("select line_no, byte_offset, line from rejects")
    assert [line_no] == right["rejected_lines"]
    data = (cases / "case08_concat_interleaved.jsonl").read_bytes()
    assert data[offset : offset + len(line)].decode() == line
    assert [bad.line_no for bad in summary.first_rejects] == right["rejected_lines"]


def test_case10_a_counter_that_restarts_each_epoch_is_no_resume(database: Database, ask: Ask, cases: Path) -> None:
    right = expected(cases, "case10_header_line")
    summary = database.ingest("a", cases / "case10_header_line.jsonl")
    assert (summary.rejects, summary.attempts) == (right["rejected"], 1)
    kinds = dict(ask("select event, count(*) from records group by 1"))
    assert kinds == {"note": right["header_rows"], "train": right["train_rows"], "eval": right["val_rows"]}
    assert [loss for (loss,) in ask("select loss from steps order by line_no")] == right["loss_in_order"]
    assert ask("select extra->>'seed' from records where event = 'note'") == [("0",)]


def test_case16_bom_and_crlf(database: Database, ask: Ask, cases: Path) -> None:
    right = expected(cases, "case16_bom_crlf")
    summary = database.ingest("a", cases / "case16_bom_crlf.jsonl")
    assert (summary.rows, summary.rejects) == (right["rows"], right["rejected"])
    assert ask("select min(step), avg(loss) from steps") == [(right["first_step"], right["loss"]["mean"])]


def test_case20_doubled_keys_and_keys_in_two_cases(database: Database, ask: Ask, cases: Path) -> None:
    right = expected(cases, "case20_dup_and_case_keys")
    summary = database.ingest("a", cases / "case20_dup_and_case_keys.jsonl")
    assert (summary.rows, summary.rejects, summary.num_warnings) == (right["rows"], right["rejected"], 1)
    assert summary.warnings == ["line 1: key 'loss' stands twice: its last value counts"]
    assert ask("select loss from steps order by step") == [(2.0,), (1.5,), (1.25,)]
    assert ask("select extra->>'Loss' from steps where step = 2") == [("77.0",)]


def test_case21_a_key_that_comes_late(database: Database, ask: Ask, cases: Path, tmp_path: Path) -> None:
    right = expected(cases, "case21_late_key")
    log = subprocess.run([sys.executable, cases / "case21_late_key_gen.py"], capture_output=True, check=True).stdout
    (tmp_path / "late.jsonl").write_bytes(log)
    summary = database.ingest("a", tmp_path / "late.jsonl")
    assert (summary.rows, summary.rejects) == (right["rows"], right["rejected"])
    late = "(extra->>'eval_accept_len')::double"
    [(count, mean, last)] = ask(f"select count({late}), avg({late}), arg_max({late}, step) from steps")
    want = right["eval_accept_len"]
    assert (count, mean, last) == (want["n"], pytest.approx(want["mean"], rel=1e-9), want["last"])
    [(low, mean)] = ask("select min(loss), avg(loss) from steps")
    assert (low, mean) == (right["loss"]["min"], pytest.approx(right["loss"]["mean"], rel=1e-9))
    assert set(ask("select key from keys")) == {("step",), ("loss",), ("eval_accept_len",)}


def test_case22_steps_of_all_kinds_and_truths_that_are_no_numbers(database: Database, ask: Ask, cases: Path) -> None:
    right = expected(cases, "case22_odd_step_types")
    summary = database.ingest("a", cases / "case22_odd_step_types.jsonl")
    assert (summary.rows, summary.rows_without_step) == (right["rows"], right["rows_without_step"])
    assert [step for (step,) in ask("select step from records order by line_no")] == right["steps_parsed"]
    assert ask("select count(loss), avg(loss), avg(lr) from steps") == [(4, right["loss"]["mean"], pytest.approx(1e-4))]
    assert ask("select json_type(extra->'training'), json_type(extra->'overflow') from records where step = 20") == [
        ("BOOLEAN", "BOOLEAN")
    ]
    assert ask("select count(*) from records where extra->>'overflow' = 'true'") == [(right["overflow_true"],)]


def test_case25_tiny_values_are_not_rounded(database: Database, ask: Ask, cases: Path) -> None:
    right = expected(cases, "case25_tiny_values")
    database.ingest("a", cases / "case25_tiny_values.jsonl")
    assert ask("select loss, lr from steps order by step desc limit 1") == [(right["loss_last"], right["lr_last"])]


def test_whole_numbers_of_any_size_stay_exact(database: Database, ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"step": 9007199254740993, "flops": 12345678901234567890123}\n'
        '{"step": 9007199254740994, "memo": 9007199254740993}\n'
    )
    database.ingest("a", tmp_path / "a.jsonl")
    assert ask("select step, extra->>'flops', extra->>'memo' from steps order by step") == [
        (9007199254740993, "12345678901234567890123", None),
        (9007199254740994, None, "9007199254740993"),
    ]


def test_two_names_for_one_column_lose_nothing(database: Database, ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"step": 1, "global_step": 5, "lr": 0.5, "learning_rate": 0.5, "loss": true}\n')
    summary = database.ingest("a", tmp_path / "a.jsonl")
    [(step, lr, loss, extra)] = ask("select step, lr, loss, extra from records")
    assert (step, lr, loss) == (1, 0.5, None)
    assert json.loads(extra) == {"global_step": 5, "loss": True}
    assert summary.warnings == ["line 1: loss: true is not a number; kept in extra"]


def test_aliases_of_a_person_fill_columns(home: Path, tmp_path: Path) -> None:
    from dflash_tui.store.base import StoreOptions

    (tmp_path / "a.jsonl").write_text('{"step": 1, "train/loss": 2.5}\n{"step": 2, "train/loss": 2.0, "x": 1}\n')
    with Database(tmp_path / "a.duckdb", StoreOptions({"train/loss": "loss"})) as database:
        database.ingest("a", tmp_path / "a.jsonl")
        assert rows_of(database, "select step, loss from steps order by step") == [(1, 2.5), (2, 2.0)]
    with pytest.raises(UsageError, match=r"no such column; did you mean 'loss'\?"):
        Database(tmp_path / "b.duckdb", StoreOptions({"train/loss": "los"}))


def test_a_start_event_says_how_many_steps(database: Database, ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"event": "start", "time": 5.5, "config": {"total_steps": 70}}\n{"step": 1, "loss": 2}\n'
    )
    database.ingest("a", tmp_path / "a.jsonl")
    [run] = database.runs()
    assert (run.step, run.total_steps, run.state, run.kind, run.name) == (1, 70, "absent", "ingested", "a")
    [attempt] = database.detail("a").attempts
    assert (attempt.first_line, attempt.first_step, attempt.cut_step, attempt.started) == (1, 1, None, 5.5)


def test_the_same_file_again_adds_only_what_is_new(database: Database, ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"step": 1, "loss": 2}\n{"step": 2, "lo')
    assert database.ingest("a", file).rows == 1
    assert database.ingest("a", file).rows == 0
    with file.open("a") as log:
        log.write('ss": 1}\n')
    assert database.ingest("a", file).rows == 1
    assert ask("select step from steps order by 1") == [(1,), (2,)]


@pytest.mark.parametrize(
    ("second", "reason"), [('{"step": 2, "loss": 7}\n', "truncated"), ('{"step": 2, "loss": 7.25}\n' * 3, "rewritten")]
)
def test_a_file_that_is_another_one_now_begins_a_generation(
    database: Database, ask: Ask, tmp_path: Path, second: str, reason: str
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"step": 1, "loss": 2}\n{"step": 2, "loss": 1}\n{"step": 3, "lo')
    database.ingest("a", file)
    file.write_text(second)
    summary = database.ingest("a", file)
    # The old log's half line will never be finished: it is told, and not lost.
    assert (summary.rejects, summary.attempts) == (1, 2 + second.count("\n") - 1)
    assert ask("select generation, line_no, step from records order by all")[:3] == [(1, 1, 1), (1, 2, 2), (2, 1, 2)]
    assert ask("select step, loss from steps order by all") == [
        (1, 2.0),
        (2, json.loads(second.splitlines()[0])["loss"]),
    ]
    assert ask("select generation, line_no, line from rejects") == [(1, 3, '{"step": 3, "lo')]
    [(text,)] = ask("select text from events")
    assert text == f"train_log.jsonl was {reason}: generation 2 begins"
    assert Mirror("a").path(TRAIN_LOG, 1).name == "train_log.1.jsonl"


def test_a_file_that_cannot_be_read_is_named(database: Database, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing.jsonl: cannot be read \(No such file or directory\)"):
        database.ingest("a", tmp_path / "nothing.jsonl")
    assert database.runs() == []

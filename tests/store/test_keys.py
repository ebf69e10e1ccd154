"""Which column a key fills: by its name, by its prefix, and by what else stands in the row."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_tui import config, paths
from dflash_tui.errors import UsageError
from dflash_tui.store import rows
from dflash_tui.store.base import StoreOptions
from dflash_tui.store.database import Database
from dflash_tui.store.exact import row_of
from dflash_tui.store.keys import ALIASES, Names

from .conftest import Rows, rows_of

Ask = Callable[..., Rows]
COLUMNS = dict.fromkeys(ALIASES.values(), "DOUBLE") | {
    "loss": "DOUBLE",
    "eval_loss": "DOUBLE",
    "step": "BIGINT",
    "rank": "INTEGER",
    "event": "VARCHAR",
    "position_acc": "DOUBLE[]",
    "bucket_loss": "JSON",
    "extra": "JSON",
}


def cells(record: dict[str, Any]) -> dict[str, Any]:
    found, notes = row_of(Names(COLUMNS, {}), record)
    assert notes == []
    return found


@pytest.mark.parametrize(
    ("record", "row"),
    [
        ({"step": 1, "learning_rate": 0.5}, {"event": "train", "step": 1, "lr": 0.5}),
        ({"global_step": 0, "train/loss": 2.0}, {"event": "train", "step": 0, "loss": 2.0}),
        ({"train": {"loss": 2.0, "eal": 1.5}, "lr": {"Muon": 0.1, "AdamW": 0.2}},
         {"event": "train", "loss": 2.0, "accept_len": 1.5, "lr_muon": 0.1, "lr": 0.2}),
        # Settings and what we do not know stay whole.
        ({"loss": 2.0, "config": {"lr": 1}, "extra": {"a": {"b": 1}}},
         {"event": "train", "loss": 2.0, "extra": {"config": {"lr": 1}, "extra": {"a": {"b": 1}}}}),
        ({"loss": 2.0, "bucket_loss": {"512": 1.0}}, {"event": "train", "loss": 2.0, "bucket_loss": {"512": 1.0}}),
        ({"loss": 2.0, "lr": {"body": 0.1}}, {"event": "train", "loss": 2.0, "extra": {"lr/body": 0.1}}),
        ({"train/loss": 1.0, "train": {"loss": 2.0}},
         {"event": "train", "loss": 1.0, "extra": {"train": {"loss": 2.0}}}),
        # An evaluation, and figures of one in a row of training.
        ({"step": 3, "eval_loss": 2.0, "eval_accuracy": 0.5, "eval_runtime": 9.0},
         {"event": "eval", "step": 3, "eval_loss": 2.0, "accuracy": 0.5, "seconds": 9.0}),
        ({"eval/loss": 2.0, "eval/foo": 1, "train/global_step": 7, "train/epoch": 0.5, "_step": 3},
         {"event": "eval", "eval_loss": 2.0, "step": 7, "epoch": 0.5, "extra": {"eval/foo": 1, "_step": 3}}),
        ({"val": {"loss_epoch": 2.0, "full_acc_epoch": 0.5}, "global_step": 6},
         {"event": "eval", "eval_loss": 2.0, "accuracy": 0.5, "step": 6}),
        ({"epoch": 1, "valid_loss": "5.1", "valid_num_updates": "100"},
         {"event": "eval", "epoch": 1.0, "eval_loss": 5.1, "step": 100}),
        ({"step": 3, "test/foo": 1}, {"event": "eval", "step": 3, "extra": {"test/foo": 1}}),
        ({"step": 3, "loss": 2.0, "val_loss": 3.0, "eval_accuracy": 0.5},
         {"event": "train", "step": 3, "loss": 2.0, "eval_loss": 3.0, "extra": {"eval_accuracy": 0.5}}),
        ({"step": 3, "valid_tokens": 9}, {"event": "train", "step": 3, "extra": {"valid_tokens": 9}}),
        ({"mode": "val", "iter": 3, "loss": 2.0}, {"event": "eval", "step": 3, "loss": 2.0, "eval_loss": 2.0}),
        ({"split": "train", "loss": 2.0}, {"event": "train", "loss": 2.0}),
        ({"mode": "online", "loss": 2.0}, {"event": "train", "loss": 2.0, "extra": {"mode": "online"}}),
        ({"event": "warn", "mode": "val"}, {"event": "warn", "extra": {"mode": "val"}}),
        # A mean over all of it is no point of a curve.
        ({"train_runtime": 9.0, "train_loss": 1.6, "epoch": 1.0, "total_flos": 10**19},
         {"event": "summary", "epoch": 1.0, "extra": {"train_runtime": 9.0, "train_loss": 1.6, "total_flos": 10**19}}),
        ({"step": 1, "train_loss": 1.6}, {"event": "train", "step": 1, "loss": 1.6}),
        ({"step": 1, "loss": 2.0, "train_loss": 1.6},
         {"event": "train", "step": 1, "loss": 2.0, "extra": {"train_loss": 1.6}}),
        # Ranks: the global one is the better.
        ({"loss": 2.0, "local_rank": 1, "global_rank": 9},
         {"event": "train", "loss": 2.0, "rank": 9, "extra": {"local_rank": 1}}),
        ({"loss": 2.0, "local_rank": "3"}, {"event": "train", "loss": 2.0, "rank": 3}),
        # No ranks at all is one process.
        ({"loss": 2.0, "local_rank": -1}, {"event": "train", "loss": 2.0, "rank": 0}),
        ({"loss": 2.0, "global_rank": 2, "local_rank": -1},
         {"event": "train", "loss": 2.0, "rank": 2, "extra": {"local_rank": -1}}),
        # One key a slot.
        ({"loss": 2.0, "train/position_2_acc": 0.25, "train/position_1_acc": 0.5},
         {"event": "train", "loss": 2.0, "position_acc": [0.5, 0.25],
          "extra": {"train/position_2_acc": 0.25, "train/position_1_acc": 0.5}}),
        ({"loss": 2.0, "acc_0": 0.5, "acc_2": 0.25},
         {"event": "train", "loss": 2.0, "extra": {"acc_0": 0.5, "acc_2": 0.25}}),
        # Clocks as text, UTC where they name no zone; a duration is no clock.
        ({"loss": 2.0, "timestamp": "1970-01-01T01:00:10+01:00"}, {"event": "train", "loss": 2.0, "time": 10.0}),
        ({"loss": 2.0, "ts": "1970-01-01 00:00:10,250"}, {"event": "train", "loss": 2.0, "time": 10.25}),
        ({"loss": 2.0, "train/time": 3.0}, {"event": "train", "loss": 2.0, "extra": {"train/time": 3.0}}),
    ],
)  # fmt: skip
def test_a_record_and_its_row(record: dict[str, Any], row: dict[str, Any]) -> None:
    assert cells(record) == row


keys = st.sampled_from(
    [
        *ALIASES,
        *("step", "loss", "Loss", "eval_loss", "eval/loss", "val_accuracy", "train/loss", "train/foo", "eval/foo"),
        *("eval_steps", "position_1_acc", "train_runtime", "foo", "grad_norm", "train/global_step", "valid_tokens"),
    ]
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DFLASH_TUI_HOME", str(tmp_path_factory.mktemp("keys")))
        paths.private_dir(paths.data_dir())
        with Database(paths.database_file()) as database:
            yield database


@settings(max_examples=25, deadline=None)
@given(records=st.lists(st.dictionaries(keys, st.integers(0, 9) | st.just(0.5), min_size=1, max_size=5), max_size=6))
def test_rows_are_the_same_however_their_lines_are_read(
    shared: Database, tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]]
) -> None:
    """By DuckDB what it reads exactly, or all one by one, as an output's dicts are."""
    folder = tmp_path_factory.mktemp("same")
    file = folder / "log"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "FEW_LINES", 1)
        for shape in ("jsonl", "text"):
            run_id = f"{shape}-{folder.name}".lower()
            shared.ingest(run_id, file, shape=shape)
            there = rows_of(shared, "select * exclude (run) from records where run = $r order by line_no", r=run_id)
            found.append([str(row) for row in there])
    assert found[0] == found[1]


def test_a_persons_aliases_come_before_ours(home: Path) -> None:
    file = paths.config_file()
    paths.private_dir(paths.config_dir())
    file.write_text('[aliases]\nmy_key = "loss"\n"a/b" = "accuracy"\niter = "epoch"\n')
    names = Names(COLUMNS, config.load().aliases)
    assert row_of(names, {"my_key": 2.0, "train_loss": 3.0, "a/b": 0.5, "iter": 4})[0] == {
        "event": "train",
        "loss": 2.0,
        "accuracy": 0.5,
        "epoch": 4.0,
        "extra": {"train_loss": 3.0},
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('my_key = "los"', r"config.toml: aliases: my_key = 'los': there is no such column; did you mean 'loss'\?"),
        ('step = "epoch"', "config.toml: aliases: step = 'epoch': 'step' is itself a column, and stays it"),
        ("my_key = 3", r"config.toml: .*str.*int.*aliases"),
    ],
)
def test_an_alias_that_cannot_be_is_named(home: Path, text: str, words: str) -> None:
    paths.private_dir(paths.config_dir())
    paths.config_file().write_text(f"[aliases]\n{text}\n")
    with pytest.raises(UsageError, match=words):
        Names(COLUMNS, config.load().aliases)


def test_rows_of_other_ranks_are_no_steps_and_no_resume(database: Database, ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(
        "".join(f"[rank{rank}]: step: {step} loss: {step}.{rank}\n" for step in range(1, 5) for rank in (1, 0, 2))
    )
    summary = database.ingest("a", tmp_path / "a.log")
    assert (summary.rows, summary.attempts) == (12, 1)
    assert ask("select step, loss from steps order by step") == [(step, float(step)) for step in range(1, 5)]


def test_unknown_keys_are_asked_by_their_own_name(home: Path, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("{'loss': 1.0, 'my/odd key': 0.25, 'nested': {'a': [1, 2]}}\n")
    with Database(tmp_path / "a.duckdb", StoreOptions()) as database:
        database.ingest("a", log)
        with database.query("select (extra->>'my/odd key')::double, extra->'nested'->'a'->>1 from records") as answer:
            assert answer.rows() == [(0.25, "2")]


def test_odd_lines_among_plain_ones_keep_their_own_extra(database: Database, ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(
        '{"step": 0, "loss": 0, "epoch": 0, "tokens_seen": 0}\n{"step": 1, "loss": "abc", "Loss": 0, "lr": "abc"}\n'
    )
    database.ingest("a", tmp_path / "a")
    assert [json.loads(extra) for (extra,) in ask("select extra from records order by line_no")] == [
        {"tokens_seen": 0},
        {"loss": "abc", "Loss": 0, "lr": "abc"},
    ]

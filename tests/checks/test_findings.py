"""What each check finds, and what it leaves alone: on the story's run, a healthy one, and one changed in one thing."""

import math
import random
import time
from pathlib import Path
from typing import Any

import pytest

from dflash_tui import paths
from dflash_tui.runs import RunEvent, RunRecord
from dflash_tui.store.base import Finding, StoreOptions
from dflash_tui.store.check_files import load_checks
from dflash_tui.store.database import Database

from .conftest import Judge
from .made_log import Row, rows, start, story, write_log

BUNDLED = sorted(file.stem for file in (paths.bundled("sql") / "checks").glob("*.sql"))


def bad(found: dict[str, Finding]) -> set[str]:
    return {name for name, finding in found.items() if finding.severity != "info"}


def test_the_story_has_tiny_gradients_a_spike_and_two_humps(judge: Judge) -> None:
    found = judge(story(spikes={11_204: 41.5}))
    assert bad(found) == {"tiny_gradients", "spikes", "two_humps"}
    tiny, spike, humps = found["tiny_gradients"], found["spikes"], found["two_humps"]
    assert f"{tiny.values['median']:.3g}" in tiny.sentence and tiny.values["median"] == pytest.approx(0.067, rel=0.1)
    assert spike.steps == [11_204] and "41.5 at step 11,204" in spike.sentence
    factor = 41.5 / spike.values["median"]
    assert spike.values["factor"] == pytest.approx(factor) and f"{factor:,.0f} times" in spike.sentence
    assert humps.values["low"] == pytest.approx(0.905, rel=0.02) and humps.values["high"] == pytest.approx(
        2.71, rel=0.02
    )
    assert all(finding.next for finding in found.values())


@pytest.mark.parametrize("steps", [300, 5_000, 23_000])
def test_a_healthy_run_has_nothing_to_warn_of(judge: Judge, steps: int) -> None:
    found = judge(rows(steps))
    assert bad(found) == set()
    assert "acceptance needs tau_linear_macro" in found["unlogged"].sentence


def changed(steps: int = 4_000, **change: Any) -> Any:
    """A healthy run in which each key of `change` is what its function makes of step, row and dice."""

    def apply(row: Row, dice: random.Random) -> Row:
        return row | {key: make(row["step"], row, dice) for key, make in change.items()}

    return rows(steps, change=apply)


CASES: dict[str, tuple[Any, list[str]]] = {
    "tiny_gradients": (lambda: changed(grad_norm=lambda s, r, d: 1e-7), ["1e-07", "2,000 rows"]),
    "spikes": (
        lambda: changed(grad_norm=lambda s, r, d: 50.0 if s in (3_200, 3_600) else r["grad_norm"]),
        ["spiked to 50 at step 3,200", "1 more, the last at step 3,600"],
    ),
    "two_humps": (
        lambda: changed(8_000, loss=lambda s, r, d: r["loss"] * (1 if d.random() < 0.8 else 2)),
        ["two humps over the last 2,000 rows"],
    ),
    "plateau": (
        lambda: changed(loss=lambda s, r, d: 1.2 + d.gauss(0, 0.03)),
        ["over the last 1,000 rows", "a plateau"],
    ),
    "lr_schedule": (
        lambda: changed(
            lr=lambda s, r, d: 3e-4 if s > 3_000 else r["lr"],
            noise_std=lambda s, r, d: 0.05 if s > 3_000 else r["noise_std"],
        ),
        ["cosine from 0.0006", "at step 3,001", "0.0003"],
    ),
    "noise_schedule": (
        lambda: changed(noise_std=lambda s, r, d: 0.2 if s > 3_500 else r["noise_std"]),
        ["gaussian, follow_lr up to 0.1", "at step 3,501", "500 of 4,000 rows"],
    ),
    "throughput_drop": (
        lambda: changed(tok_per_sec=lambda s, r, d: r["tok_per_sec"] / (2 if s > 3_700 else 1)),
        ["from 26,146 before: 50.0 % less"],
    ),
    "padding": (lambda: changed(padding_eff=lambda s, r, d: 0.5), ["0.5 over the last 2,000 rows: 50 %"]),
    "length_bias": (
        lambda: changed(accuracy=lambda s, r, d: 0.4 if r["avg_seq_len"] > 3000 else 0.2 + d.gauss(0, 0.01)),
        ["accuracy is 0.4 on long sequences and 0.2 on mid ones"],
    ),
    "nan_streak": (
        lambda: changed(loss=lambda s, r, d: math.nan if 100 <= s < 107 or s == 9 else r["loss"]),
        ["7 rows in a row, steps 100..106; in 8 of 4,000 rows in all"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_thing_that_is_wrong_is_found_and_nothing_else(judge: Judge, name: str) -> None:
    make, words = CASES[name]
    found = judge(make())
    assert bad(found) == {name}
    assert all(word in found[name].sentence for word in words), found[name].sentence
    assert "\n" not in found[name].sentence
    assert found[name].steps and found[name].values and found[name].next


@pytest.mark.parametrize("config", [{"warmup_ratio": 0.04, "total_steps": 400}, {"warmup_steps": 16}, {}])
def test_large_gradients_of_a_warm_up_are_no_spikes(judge: Judge, config: Any) -> None:
    def norms(high: int) -> list[Row]:
        dice = random.Random(0)
        return [{"step": s, "grad_norm": 20.46 if s == high else math.exp(dice.gauss(0, 0.2))} for s in range(1, 401)]

    assert "spikes" not in judge([start(config), *norms(high=11)])
    assert "20.46 at step 30" in judge([start(config), *norms(high=30)])["spikes"].sentence


def test_noise_of_single_steps_is_held_against_the_clean_ones_beside_them(judge: Judge) -> None:
    def shaken(row: Row, dice: random.Random) -> Row:
        is_noisy = dice.random() < 0.5
        return row | {"noise_std": 0.1 if is_noisy else 0.0, "loss": row["loss"] * (1.3 if is_noisy else 1.0)}

    found = judge(rows(4_000, change=shaken))
    assert "noisy_steps" in found and found["noisy_steps"].values["worse_pct"] == pytest.approx(30, abs=2)
    harmless = judge(changed(noise_std=lambda s, r, d: 0.1 if d.random() < 0.5 else 0.0))
    assert "noisy_steps" not in harmless


def test_a_loss_that_fell_at_once_has_no_two_humps(judge: Judge) -> None:
    assert "two_humps" not in judge(changed(loss=lambda s, r, d: (3.0 if s < 3_000 else 1.0) + d.gauss(0, 0.03)))


def test_two_humps_go_with_no_length_where_all_are_alike(judge: Judge) -> None:
    humps = judge(
        changed(
            8_000, loss=lambda s, r, d: r["loss"] * (1 if d.random() < 0.8 else 2), avg_seq_len=lambda s, r, d: 2048.0
        )
    )["two_humps"]
    assert "avg_seq_len" not in humps.sentence and humps.values["r_avg_seq_len"] is None


def test_a_streak_that_lasts_is_critical_and_comes_first(store: Database, judge: Judge) -> None:
    found = judge(
        changed(grad_norm=lambda s, r, d: math.inf if s > 3_990 else r["grad_norm"], padding_eff=lambda s, r, d: 0.1)
    )
    assert next(iter(found)) == "nan_streak" and found["nan_streak"].severity == "critical"
    assert "10 rows in a row, steps 3,991..4,000, up to now" in found["nan_streak"].sentence
    few = judge(changed(loss=lambda s, r, d: math.nan if s % 1_000 == 7 else r["loss"]))
    assert few["nan_streak"].severity == "info" and "4 of 4,000 rows" in few["nan_streak"].sentence


@pytest.mark.parametrize(
    "config",
    [
        {"lr": {"Muon": 1e-3}, "lr_schedule": 3, "total_steps": "auto"},
        {"lr": "fast", "noise": 0.1},
        {"noise": {"kind": 1}},
        [],
        "x",
        None,
    ],
)
def test_a_start_event_of_another_trainer_is_no_trouble(judge: Judge, config: Any) -> None:
    made = [{"step": s, "lr": 1e-4, "noise_std": 0.0} for s in range(1, 300)]
    found = judge([{"event": "start", "time": 1.0, "config": config}, *made])
    assert set(found) == {"unlogged"}


def evaluation(**figures: float) -> Row:
    return {"event": "eval", "step": 1_000, "time": 1.78e9, **figures}


@pytest.mark.parametrize(
    ("figures", "says"),
    [
        ({"tau_linear_macro": 1.3, "walk_accept_len": 3.9, "accept_len": 4.5}, "promises 3.9 (walk_accept_len): 33 %"),
        ({"tau_linear_macro": 1.3, "accept_len": 2.6}, "promises 2.6 (accept_len): 50 %"),
        ({"tau_linear_macro": 1.3, "accuracy": 0.75}, "(accuracy 0.75)"),
        ({"tau_linear_macro": 3.3, "walk_accept_len": 3.9}, None),
        ({"tau_linear_macro": 1.0, "accuracy": 0.1}, None),
    ],
)
def test_acceptance_is_held_against_what_teacher_forcing_promises(
    judge: Judge, figures: dict[str, float], says: str | None
) -> None:
    found = judge([*({"step": s, "loss": 1 / s} for s in range(1, 50)), evaluation(**figures)])
    assert (says in found["acceptance"].sentence) if says else "acceptance" not in found


def test_only_a_running_log_can_stall(store: Database, tmp_path: Path) -> None:
    store.register_run(RunRecord("r", "r", "train", host="local", created=1.0))
    store.ingest("other", write_log(tmp_path / "log", rows(100)))
    last = 1_780_000_000 + 100 * 2.12

    def stalled(run: str) -> str | None:
        return next((finding.sentence for finding in store.check(run) if finding.check == "stalled"), None)

    assert stalled("r") is None and stalled("other") is None
    store.event("r", RunEvent(last, "state", "running", attempt=1))
    store.contact(["r"], last + 500)
    assert stalled("r") is None
    store.contact(["r"], last + 5_000)
    assert stalled("r") == "the run is running and has logged nothing for 5,000 s"
    store.event("other", RunEvent(last - 300, "state", "running", attempt=1))
    store.contact(["other"], last + 700)
    assert "has stood still for 700 s at step 100, a row used to come every 2.12 s" in (stalled("other") or "")
    store.event("other", RunEvent(last, "state", "finished", attempt=1))
    assert stalled("other") is None


def test_a_run_without_rows_and_one_without_keys_are_no_trouble(store: Database, judge: Judge) -> None:
    store.register_run(RunRecord("empty", "empty", "train", host="local", created=1.0))
    [finding] = store.check("empty")
    assert (finding.check, finding.severity) == ("unchecked", "info")
    assert judge([{"event": "start", "time": 1.0}, {"event": "eval", "step": 0, "tau_linear_macro": 1.0}]).keys() == {
        "unchecked"
    }
    [finding] = judge([{"step": 1, "other": 3}]).values()
    assert (finding.check, finding.severity) == ("unlogged", "info")
    assert "loss needs loss" in finding.sentence and "batch needs avg_batch_size or avg_seq_len" in finding.sentence
    assert "length_buckets needs accuracy or ddtree_streak8 and avg_seq_len;" in finding.sentence
    assert "utilization_pct" not in finding.sentence, "which is sampled, not logged"


def test_a_run_without_a_step_is_not_well_but_unchecked(store: Database) -> None:
    store.register_run(RunRecord("r", "r", "train", host="local", created=1.0))

    def said(state: str, reason: str | None = None) -> str:
        store.event("r", RunEvent(time.time(), "state", state, reason, attempt=1))
        return " ".join(finding.sentence for finding in store.check("r"))

    assert said("running") == "training cannot be checked yet: no step is logged so far"
    assert said("failed", "environment").startswith("training cannot be checked: the run is failed (environment)")


@pytest.mark.parametrize(
    ("log", "step", "is_told"), [({}, 50, False), ({}, 100, True), ({"log_arrays_every": 80}, 120, False)]
)
def test_a_run_that_goes_on_has_time_to_log_its_keys(
    store: Database, tmp_path: Path, log: Row, step: int, is_told: bool
) -> None:
    """What is logged every 50 steps is not missing at the 49th, and what the last step lacks is missing for good."""
    made = [start({"lr": 1.0} | log), *({"step": s, "loss": 1.0} for s in range(1, step + 1))]
    store.ingest("r", write_log(tmp_path / "log", made))
    store.event("r", RunEvent(time.time(), "state", "running", attempt=1))
    assert [one.check for one in store.check("r")] == ["unlogged"] * is_told
    store.event("r", RunEvent(time.time(), "state", "finished", "completed", attempt=1))
    assert [one.check for one in store.check("r")] == ["unlogged"]


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_check_explains_itself_and_passes_the_guard_of_a_persons_own(
    store: Database, tmp_path: Path, name: str
) -> None:
    [check] = [check for check in load_checks() if check.name == name]
    assert check.broken is None and len(check.help) > 40 and check.title and check.next and check.order < 1000
    mine = paths.config_dir() / "checks" / f"{name}.sql"
    mine.parent.mkdir(parents=True)
    # Another text, or the statement of ours would be found that was let through before.
    mine.write_text(check.sql + "\n-- mine\n")
    store.ingest("r", write_log(tmp_path / "log", [*rows(300), evaluation(tau_linear_macro=2.0)]))
    assert not [finding for finding in store.check("r") if finding.check == name and ".sql" in finding.sentence]


def test_thresholds_come_from_the_config(home: Path, tmp_path: Path) -> None:
    options = StoreOptions(thresholds={"padding": {"least": 0.9}, "spikes": {"facter": 3.0}, "spkies": {"factor": 3.0}})
    with Database(tmp_path / "other.duckdb", options) as store:
        store.ingest("r", write_log(tmp_path / "log", rows(300)))
        found = {finding.check: finding.sentence for finding in store.check("r")}
    assert found["padding"].startswith("padding efficiency is 0.84")
    assert found["spikes"].endswith("config.toml: unknown key checks.spikes.facter: did you mean 'factor'?")
    assert found["spkies"].endswith("config.toml: unknown key checks.spkies: did you mean 'spikes'?")

"""What a run planned beside what it does: declared schedules, epochs and tokens; the GPUs it is on; two windows."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.runs import GpuSample, Window
from dflash_tui.store.base import PanelResult
from dflash_tui.store.database import Database

CONFIG = {
    "lr": 0.01,
    "lr_schedule": "cosine",
    "warmup_ratio": 0.1,
    "total_steps": 100,
    "epochs": 2,
    "noise": {"kind": "gaussian", "std": 0.1, "schedule": "follow_lr", "on": "fc_input"},
}


def lr_at(step: float, peak: float = 0.01, total: float = 100) -> float:
    warm = 0.1 * total
    return peak * (step / warm if step < warm else 0.5 + 0.5 * math.cos(math.pi * (step - warm) / (total - warm)))


def write(log: Path, *parts: dict[str, Any] | list[dict[str, Any]]) -> Path:
    rows = [row for part in parts for row in (part if isinstance(part, list) else [part])]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return log


def steps(first: int, last: int, factor: float = 1.0) -> list[dict[str, Any]]:
    return [
        {"step": s, "lr": factor * lr_at(s), "noise_std": 10 * factor * lr_at(s), "tokens": 50, "time": 1e9 + s}
        for s in range(first, last + 1)
    ]


def one(store: Database, name: str, window: Window | None = None, buckets: int = 100) -> PanelResult:
    [found] = store.report("run", [name], window or Window(), buckets)
    assert found.state == "rows", found.why
    return found


def column(panel: PanelResult, name: str) -> list[Any]:
    return [row[panel.columns.index(name)] for row in panel.rows]


def test_the_declared_schedule_stands_beside_the_logged_one(store: Database, tmp_path: Path) -> None:
    log = write(tmp_path / "log.jsonl", {"event": "start", "config": CONFIG}, steps(1, 60))
    store.ingest("run", log)
    lr, noise = one(store, "lr"), one(store, "noise")
    assert column(lr, "declared") == pytest.approx([lr_at(s) for s in range(1, 61)])
    assert column(lr, "declared") == pytest.approx(column(lr, "mean"))
    assert column(noise, "declared") == pytest.approx(column(noise, "mean"))
    tens = one(store, "lr", buckets=7)
    assert column(tens, "declared") == pytest.approx([lr_at(sum(part) / len(part)) for part in in_tens(60)])


def test_the_first_step_of_a_log_is_the_first_of_the_schedule(store: Database, tmp_path: Path) -> None:
    """Our trainer makes step 1 by the schedule at 0; what is declared lies on what it logs, in warm-up too."""
    config = CONFIG | {"noise": {"kind": "gaussian", "std": 0.1, "schedule": "cosine"}}
    noise = [0.1 * (0.5 + 0.5 * math.cos(math.pi * s / 100)) for s in range(60)]
    rows = [{"step": s + 1, "lr": lr_at(s), "noise_std": noise[s]} for s in range(60)]
    store.ingest("run", write(tmp_path / "log.jsonl", {"event": "start", "config": config}, rows))
    for name, logged in (("lr", [row["lr"] for row in rows]), ("noise", noise)):
        assert column(one(store, name), "declared") == pytest.approx(logged), name
    assert not {"lr_schedule", "noise_schedule"} & {finding.check for finding in store.check("run")}


def in_tens(last: int) -> list[list[int]]:
    return [[s for s in range(1, last + 1) if s // 10 == part] for part in range(last // 10 + 1)]


def test_a_resume_is_held_against_its_own_start_event(store: Database, tmp_path: Path) -> None:
    again = {"event": "start", "resumed_from_step": 30, "config": {**CONFIG, "lr": 0.02, "noise": {"kind": "none"}}}
    log = write(tmp_path / "log.jsonl", {"event": "start", "config": CONFIG}, steps(1, 30), again, steps(31, 40))
    store.ingest("run", log)
    declared = column(one(store, "lr"), "declared")
    assert declared == pytest.approx([lr_at(s) for s in range(1, 31)] + [2 * lr_at(s) for s in range(31, 41)])
    assert column(one(store, "noise"), "declared")[30:] == [0] * 10


def test_each_start_event_has_its_own_total_steps(store: Database, tmp_path: Path) -> None:
    config = {key: CONFIG[key] for key in ("lr", "lr_schedule", "warmup_ratio")}
    config |= {"noise": {"kind": "gaussian", "std": 0.1, "schedule": "cosine"}}
    parts: list[Any] = []
    for first, total in ((1, 100), (51, 200)):
        noise = [(s, 0.1 * (0.5 + 0.5 * math.cos(math.pi * s / total))) for s in range(first, first + 50)]
        parts.append({"event": "start", "total_steps": total, "config": config})
        parts.append([{"step": s, "lr": lr_at(s, total=total), "noise_std": std} for s, std in noise])
    store.ingest("run", write(tmp_path / "log.jsonl", *parts))
    for name in ("lr", "noise"):
        assert column(one(store, name), "declared") == pytest.approx(column(one(store, name), "mean")), name


def test_a_schedule_of_unknown_length_is_none_and_one_without_a_warm_up_begins_at_0(
    store: Database, tmp_path: Path
) -> None:
    config = {"lr": 0.01, "lr_schedule": "cosine", "noise": {"kind": "gaussian", "std": 0.1, "schedule": "cosine"}}
    rows = [{"step": s, "lr": 0.01, "noise_std": 0.1} for s in range(10)]
    store.ingest("run", write(tmp_path / "log.jsonl", {"event": "start", "config": config}, rows))
    assert set(column(one(store, "lr"), "declared")) == set(column(one(store, "noise"), "declared")) == {None}
    config |= {"lr_schedule": "constant"}
    store.ingest("run", write(tmp_path / "log.jsonl", {"event": "start", "config": config, "total_steps": 100}, rows))
    assert set(column(one(store, "lr"), "declared")) == {0.01}


@pytest.mark.parametrize("config", [None, {}, {"lr": 0.01}, {**CONFIG, "lr_schedule": "by ear", "noise": None}])
def test_nothing_is_declared_that_was_not(store: Database, tmp_path: Path, config: Any) -> None:
    log = write(tmp_path / "log.jsonl", {"event": "start", "config": config}, steps(1, 20))
    store.ingest("run", log)
    assert set(column(one(store, "lr"), "declared")) == set(column(one(store, "noise"), "declared")) == {None}


def test_epochs_and_tokens_are_held_against_the_plan(store: Database, tmp_path: Path) -> None:
    """`total_steps` decides when a run ends, whatever `epochs` says beside it."""

    def budget(run: str, config: dict[str, Any], epoch: float | None) -> dict[str, Any]:
        rows = [row | ({} if epoch is None else {"epoch": epoch * row["step"] / 25}) for row in steps(1, 25)]
        store.ingest(run, write(tmp_path / f"{run}.jsonl", {"event": "start", "config": config}, rows))
        [found] = store.report(run, ["budget"], Window(), 100)
        assert [row[0] for row in found.rows] == [
            "step", "total_steps", "epoch", "epochs_planned", "tokens_per_step", "tokens_total", "tokens_planned",
            "steps_per_sec", "eta_s",
        ]  # fmt: skip
        return {row[0]: (row[1], row[3]) for row in found.rows}

    both = CONFIG | {"epochs": 6}
    found = budget("both", both, 0.7)
    assert found["epochs_planned"] == (pytest.approx(2.8), "epoch x total_steps / step")
    assert found["tokens_planned"] == (5000, "tokens_per_step x total_steps; 25 % are done")
    assert budget("silent", both, None)["epochs_planned"] == (
        None,
        "unknown: total_steps decides, and epoch has no value",
    )
    assert budget("epochs", both | {"total_steps": None}, 0.7)["epochs_planned"] == (6, "of the start event")


def test_gpus_are_drawn_over_time_with_a_gap_where_nobody_looked(store: Database, tmp_path: Path) -> None:
    store.ingest("run", write(tmp_path / "log.jsonl", steps(1, 2000)))
    [empty] = store.report("run", ["gpu"], Window(), 50)
    assert empty.why == (
        "no GPU was sampled: that is done while a session or `watch` follows a run on a host that has GPUs"
    )
    samples = [
        GpuSample(1e9 + t, gpu, "H200", 90.0 + gpu, 1024.0 * 30, 1024.0 * 40, None, 60.0, 300.0)
        for t in [*range(0, 100, 10), *range(1500, 1600, 10)]
        for gpu in (0, 1)
    ]
    store.gpus({"run": samples})
    gpu = one(store, "gpu", buckets=160)
    assert gpu.headline == "now 90.5 % busy · 60 of 80 GiB · 60 C · 600 W · 2 GPU"
    rows = dict(zip(column(gpu, "time"), column(gpu, "busy"), strict=True))
    assert list(rows.values()).count(None) == 1
    assert {value for value in rows.values() if value is not None} == {90.5}
    assert max(rows) == pytest.approx(1589, abs=1) and column(gpu, "memory")[0] == 75
    late = one(store, "gpu", Window.between(1500, 1550))
    assert min(column(late, "time")) >= 1498 and None not in column(late, "busy")
    [none] = store.report("run", ["gpu"], Window.between(300, 400), 50)
    assert none.why == "none of the 40 samples of its GPUs was taken there (steps 300..400)"


def test_two_windows_are_held_against_one_another(store: Database, tmp_path: Path) -> None:
    rows = [{"step": s, "loss": 100.0 - s if s != 7 else "NaN", "grad_norm": 0.0} for s in range(1, 51)]
    store.ingest("run", write(tmp_path / "log.jsonl", rows))
    asked = (Window.between(1, 9), Window.between(41, 50))
    [found] = store.report("run", ["windows"], Window(), 10, asked)
    assert found.headline == "a 1..9 · b 41..50"
    assert found.columns == ["metric", "a", "b", "pct", "delta", "n_a", "n_b"]
    assert found.rows == [
        ["loss", 95.5, 54.5, pytest.approx(-100 * 41 / 95.5), -41.0, 8, 10],
        ["grad_norm", 0.0, 0.0, None, 0.0, 9, 10],
    ]
    [halves] = store.report("run", ["windows"], Window(), 10)
    assert halves.headline == "a 1..25 · b 26..50" and halves.rows[0][-2:] == [24, 25]
    [nowhere] = store.report("run", ["windows"], Window(), 10, (asked[0], Window.between(900, 990)))
    assert nowhere.rows[0][2:] == [None, None, None, 8, 0]

"""Whole runs of seconds: what they log, how they stop, and that going on is as if they never had."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from trainer import evaluate
from trainer.run import run
from trainer.train import Run

from .trainer_setup import ROOT, checked, events, nested, records, write_rows

pytestmark = pytest.mark.slow

STEP_KEYS = {
    "event", "time", "step", "epoch", "loss", "accuracy", "accept_len", "ddtree_streak8", "lr", "grad_norm",
    "grad_clipped", "noise_std", "avg_batch_size", "avg_seq_len", "padding_eff", "supervised_share", "tokens",
    "draft_tokens", "tokens_total", "tok_per_sec", "step_time_s", "target_fwd_s",
}  # fmt: skip
SPARSE_KEYS = {"bucket_loss", "n_blocks", "loss_ce", "draft_top1_prob", "position_acc", "rss_gb"}
SPARSE_KEYS |= {"data_wait_s", "fwd_s", "bwd_s", "opt_s"}
START_KEYS = {"run_id", "schema", "config", "config_hash", "versions", "target", "data_hash", "loss_norm"}


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> Path:
    """Responses that are there, of many lengths, and two short prompts to decode."""
    text = (ROOT / "trainer" / "tiny_target" / "LICENSE").read_text()
    train = [{"prompt": text[i : i + 9], "response": text[i + 9 : i + 30 + i % 17]} for i in range(0, 900, 31)]
    held_out = [{"prompt": prompt, "split": "eval", "max_new_tokens": 14} for prompt in ("import ", "class A")]
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.jsonl", train + held_out)


@pytest.fixture
def settings(rows):
    def make(run_dir: Path, **changes):
        return checked(run_dir, **{"data": {"path": str(rows)}, "batch_tokens": 256, **changes})

    make.rows = rows
    return make


LONG = {"total_steps": 20, "noise": {"kind": "gaussian"}, "eval_every": 7, "save_every": 6}


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory, rows) -> Path:
    """Never stopped."""
    run_dir = tmp_path_factory.mktemp("whole")
    assert run(checked(run_dir, data={"path": str(rows)}, batch_tokens=256, **LONG)) == 0
    return run_dir


def columns() -> set[str]:
    """Of the session's table `records`."""
    schema = (ROOT / "sql" / "schema.sql").read_text()
    body = re.search(r"create view records as select(.*?)\nfrom logged;", schema, re.S)
    assert body
    return set(re.findall(r'"?(\w+)"?(?:,|$)', body[1]))


def losses(run_dir: Path) -> dict[int, tuple[float, float]]:
    """The figures of each step that counts: a later attempt's rows replace those of an earlier one."""
    return {r["step"]: (r["loss"], r["grad_norm"]) for r in events(run_dir, "train")}


def weights(run_dir: Path) -> dict[str, torch.Tensor]:
    newest = max((run_dir / "checkpoints").iterdir(), key=lambda p: int(p.name[5:]))
    return load_file(newest / "model.safetensors")


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_the_log_says_all_and_nothing_unknown(tmp_path, settings):
    noise = {"kind": "uniform", "std": 0.1, "schedule": "follow_lr"}
    config = settings(tmp_path, run_id="r1", total_steps=8, eval_every=4, save_every=3, log_arrays_every=4, noise=noise)
    assert run(config) == 0
    log = records(tmp_path)
    assert [(r["event"], r.get("step")) for r in log if r["event"] != "train"] == [
        ("start", None), ("eval", 0), ("checkpoint", 3), ("eval", 4), ("checkpoint", 4), ("checkpoint", 6), ("eval", 8),
        ("checkpoint", 8), ("end", None),
    ]  # fmt: skip
    assert log[0]["event"] == "start" and log[-1]["event"] == "end"
    assert set().union(*(set(r) for r in log)) - columns() == START_KEYS
    start = log[0]
    assert (start["run_id"], start["schema"], start["loss_norm"], start["gamma"]) == ("r1", 1, "sum_w", 4.0)
    assert start["config"]["total_steps"] == 8
    assert start["config"]["noise"] == {**noise, "on": "fc_input"}
    assert start["config"]["target_layer_ids"] == [1, 3] and start["config"]["mask_token_id"] == 259
    assert "resumed_from_step" not in start
    assert (log[-1]["reason"], log[-1]["exit_code"]) == ("completed", 0)
    steps = events(tmp_path, "train")
    assert [r["step"] for r in steps] == list(range(1, 9))
    for r in steps:
        assert set(r) == STEP_KEYS | (SPARSE_KEYS if r["step"] % 4 == 0 else set())
        assert r["noise_std"] == pytest.approx(0.1 * r["lr"] / 6e-4, rel=1e-4)
        assert r["tokens"] == pytest.approx(r["avg_batch_size"] * r["avg_seq_len"], rel=1e-4)
    assert steps[-1]["tokens_total"] == sum(r["tokens"] for r in steps)
    assert all(a["time"] <= b["time"] for a, b in pairwise(log))
    lines = (tmp_path / "train_log.jsonl").read_bytes().splitlines()
    plain = [line for line in lines if line.startswith(b'{"event":"train"') and b"position_acc" not in line]
    assert max(map(len, plain)) < 450
    # Evaluations that were better than all before are saved at once.
    assert [r["best"] for r in events(tmp_path, "checkpoint")] == [False, True, False, True]
    kept = [r for r in events(tmp_path, "checkpoint") if r["step"] != 3]
    for r in kept:
        folder = tmp_path / r["path"]
        assert folder.is_dir() and r["bytes"] == sum(f.stat().st_size for f in folder.iterdir())


def test_every_evaluation_is_lossless_and_an_untrained_drafter_is_worth_nothing(tmp_path, settings):
    assert run(settings(tmp_path, total_steps=2, eval={"num_prompts": 1}, eval_every=1)) == 0
    first, middle, last = events(tmp_path, "eval")
    assert [r["n_samples"] for r in (first, middle, last)] == [2, 1, 2]
    assert [r["lossless"] for r in (first, middle, last)] == [1.0] * 3
    assert first["tau_linear_macro"] < 1.2


def test_a_seed_gives_the_same_run_again_and_another_seed_another(tmp_path, settings):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert run(settings(tmp_path / name, seed=seed, total_steps=3)) == 0
    assert losses(tmp_path / "a") == losses(tmp_path / "b") != losses(tmp_path / "c")
    assert same(weights(tmp_path / "a"), weights(tmp_path / "b"))


@contextmanager
def signalled(step: int, number: int = signal.SIGTERM) -> Iterator[None]:
    """This process is signalled in the middle of a run, right after its step `step`."""
    take_step = Run.take_step

    def take_step_and_signal(self: Run) -> None:
        take_step(self)
        if self.step == step:
            os.kill(os.getpid(), number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "take_step", take_step_and_signal)
        yield


@pytest.mark.parametrize(("step", "number"), [(1, signal.SIGTERM), (6, signal.SIGTERM), (13, signal.SIGINT)])
def test_a_stopped_run_goes_on_as_if_it_never_stopped(tmp_path, settings, whole_run, step, number, capsys):
    """20 steps of several epochs, with noise: the order of the data, the anchors and the optimizer all matter."""
    with signalled(step, number):
        assert run(settings(tmp_path, **LONG)) == 75
    end = events(tmp_path, "end")[-1]
    assert (end["reason"], end["exit_code"]) == ("saved", 75)
    assert events(tmp_path, "checkpoint")[-1]["step"] == events(tmp_path, "train")[-1]["step"] == step
    capsys.readouterr()
    assert run(settings(tmp_path, **LONG)) == 0
    assert "written by the target" not in capsys.readouterr().out
    assert [r.get("resumed_from_step") for r in events(tmp_path, "start")] == [None, step]
    assert events(tmp_path, "warn") == []
    assert [r["step"] for r in events(tmp_path, "train")] == list(range(1, 21))
    assert losses(tmp_path) == losses(whole_run)
    assert same(weights(tmp_path), weights(whole_run))
    assert [r["step"] for r in events(tmp_path, "eval")] == [0, 7, 14, 20]
    for key in ("lr", "noise_std", "tokens_total", "epoch"):
        assert [r[key] for r in events(tmp_path, "train")] == [r[key] for r in events(whole_run, "train")]


@pytest.mark.parametrize("stop_at", [2, 4])
def test_an_evaluation_that_a_stop_cut_short_is_made_by_the_resume(tmp_path, settings, monkeypatch, stop_at):
    """The signal comes while prompts are decoded: what was trained is saved at once, the last step's too."""
    changes = {"total_steps": 4, "eval_every": 2, "save_every": 100, "data": {"path": str(settings.rows)}}
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert run(settings(whole, **changes)) == 0
    taken, walks = [], evaluate.walks

    def walks_and_signal(objectives, held_out, check_stop):
        taken.append(1)
        if len(taken) == 1 + stop_at // 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return walks(objectives, held_out, check_stop)

    with monkeypatch.context() as patch:
        patch.setattr(evaluate, "walks", walks_and_signal)
        assert run(settings(cut, **changes)) == 75
    assert [r["step"] for r in events(cut, "eval")] == list(range(0, stop_at, 2))
    assert events(cut, "checkpoint")[-1]["step"] == events(cut, "train")[-1]["step"] == stop_at
    assert run(settings(cut, **changes)) == 0
    told = [[(r["step"], r["tau_linear_macro"], r["eval_loss"]) for r in events(d, "eval")] for d in (cut, whole)]
    assert told[0] == told[1] and losses(cut) == losses(whole) and same(weights(cut), weights(whole))
    best = [[r["step"] for r in events(d, "checkpoint") if r["best"]] for d in (cut, whole)]
    assert best[0] == best[1]
    assert run(settings(cut, **changes)) == 0 and len(events(cut, "eval")) == 3


def test_an_evaluation_that_ends_the_run_costs_no_step(tmp_path, settings, monkeypatch):
    """Of the last step, which takes the most memory: what was trained is there, and only that is made again."""
    changes = {"total_steps": 3, "eval_every": 2, "save_every": 100}
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert run(settings(whole, **changes)) == 0

    walks, taken = evaluate.walks, []

    def walks_or_fail(*words):
        taken.append(1)
        if len(taken) == 3:
            raise MemoryError
        return walks(*words)

    with monkeypatch.context() as patch:
        patch.setattr(evaluate, "walks", walks_or_fail)
        assert run(settings(cut, **changes)) == 1
    assert [r["step"] for r in events(cut, "eval")] == [0, 2]
    assert run(settings(cut, **changes)) == 0
    assert [r.get("resumed_from_step") for r in events(cut, "start")] == [None, 3]
    told = [[(r["step"], r["tau_linear_macro"]) for r in events(folder, "eval")] for folder in (cut, whole)]
    assert told[0] == told[1] and [r["step"] for r in events(cut, "train")] == [1, 2, 3]
    best = [[(r["step"], r["best"]) for r in events(folder, "checkpoint")] for folder in (cut, whole)]
    assert best[0] == best[1] and same(weights(cut), weights(whole))
    assert sorted(p.name for p in (cut / "checkpoints").iterdir()) == sorted(
        p.name for p in (whole / "checkpoints").iterdir()
    )


def test_a_run_that_is_stopped_after_every_step_is_the_same_run(tmp_path, rows, random_folder):
    """Every step is one to go on from: two batches a step, noise on the labels, weights that hang on what is right."""
    changes = {
        "target": str(random_folder), "target_layer_ids": [1, 3], "data": {"path": str(rows), "num_eval": 0},
        "teacher": "final_hidden", "loss": {"ce": 0.5, "kl": 0.5}, "noise": {"kind": "uniform", "on": "all"},
        "position_weight": "dpace", "micro_batches": 2, "batch_tokens": 256, "total_steps": 9, "keep_checkpoints": 1,
        "sliding_layers": [0], "sliding_window": 5, "activation_checkpointing": True,
    }  # fmt: skip
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert run(checked(whole, **changes)) == 0
    for step in range(1, 9):
        with signalled(step):
            assert run(checked(cut, **changes)) == 75
    assert run(checked(cut, **changes)) == 0
    assert [r.get("resumed_from_step") for r in events(cut, "start")] == [None, *range(1, 9)]
    assert losses(cut) == losses(whole) and len(losses(whole)) == 9
    assert same(weights(cut), weights(whole))
    for key in ("lr", "noise_std", "tokens_total", "epoch", "accept_len"):
        assert [r[key] for r in events(cut, "train")] == [r[key] for r in events(whole, "train")]


def test_a_killed_run_goes_on_from_its_last_whole_checkpoint(tmp_path, settings):
    """The newest checkpoint is damaged and the log's last line torn, as a crash may leave them."""
    changes = {"total_steps": 9, "save_every": 3}
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert run(settings(whole, **changes)) == 0
    assert run(settings(cut, **{**changes, "total_steps": 9})) == 0
    damaged = cut / "checkpoints" / "step-9" / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:1000])
    with (cut / "train_log.jsonl").open("ab") as log:
        log.write(b'{"event":"train","st')
    assert run(settings(cut, **changes)) == 0
    lines = (cut / "train_log.jsonl").read_bytes().splitlines()
    assert lines.count(b'{"event":"train","st') == 1
    later = [json.loads(line) for line in lines[lines.index(b'{"event":"train","st') + 1 :]]
    assert (later[0]["event"], later[0]["resumed_from_step"]) == ("start", 6)
    assert later[1]["event"] == "warn" and "step-9 is damaged" in later[1]["reason"]
    again = {r["step"]: (r["loss"], r["grad_norm"]) for r in later if r["event"] == "train"}
    assert again == {step: losses(whole)[step] for step in (7, 8, 9)}
    assert same(weights(cut), weights(whole))


def test_a_completed_run_has_nothing_left_to_do(tmp_path, settings):
    assert run(settings(tmp_path, total_steps=2)) == 0
    before = events(tmp_path, "train")
    assert run(settings(tmp_path, total_steps=2)) == 0
    assert events(tmp_path, "train") == before
    assert events(tmp_path, "end")[-1]["reason"] == "completed"


def test_a_resume_with_another_block_is_refused_and_with_another_gamma_noted(tmp_path, settings, capsys):
    assert run(settings(tmp_path, total_steps=2)) == 0
    assert run(settings(tmp_path, total_steps=2, block_size=6)) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and re.search(r"block_size: .* has 4 and the config says 6", line)
    assert (events(tmp_path, "end")[-1]["reason"], events(tmp_path, "end")[-1]["exit_code"]) == ("error", 2)
    assert run(settings(tmp_path, total_steps=2, gamma=9)) == 0
    assert events(tmp_path, "warn")[-1]["reason"] == "gamma was 4.0 before the resume and is 9.0 now"


def test_nan_stops_the_run_and_spoils_nothing(tmp_path, tiny, rows, settings, capsys):
    """A target whose embedding of one letter is NaN: every batch that holds it has features of NaN."""
    folder = tmp_path / "target"
    folder.mkdir()
    for file in tiny.path.iterdir():
        if file.suffix != ".py" and file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    tensors = load_file(folder / "model.safetensors")
    tensors["model.embed_tokens.weight"][ord("~")] = float("nan")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    spoiled = write_rows(tmp_path / "rows.jsonl", [{"prompt": "a~", "response": "b" * n} for n in range(20, 30)])
    run_dir = tmp_path / "run"
    clean = settings(run_dir, target=str(folder), data={"path": str(rows), "num_eval": 0}, total_steps=9, save_every=2)
    with signalled(3):
        assert run(clean) == 75
    good = weights(run_dir)
    capsys.readouterr()
    bad = settings(
        run_dir, target=str(folder), data={"path": str(spoiled)}, total_steps=500, save_every=2, max_nonfinite_steps=3
    )
    assert run(bad) == 1
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and "not finite for 3 steps in a row" in line
    steps = [r for r in events(run_dir, "train") if r["step"] > 3]
    assert [r["loss"] for r in steps] == ["NaN"] * 3
    assert (events(run_dir, "end")[-1]["reason"], events(run_dir, "end")[-1]["exit_code"]) == ("nan", 1)
    said = [r["reason"] for r in events(run_dir, "warn") if "changed no weight" in r["reason"]]
    # Named with the lines of its batch, all of which hold the letter.
    assert len(said) == 1 and re.search(r"not finite on data lines (\d+, )*\d+$", said[0])
    assert same(weights(run_dir), good)


@pytest.mark.parametrize(
    ("error", "reason", "words"),
    [
        (OSError(28, "No space left on device"), "disk-full", "no room to write"),
        (MemoryError(), "oom", "lower batch_tokens"),
        (torch.OutOfMemoryError("CUDA out of memory"), "oom", "lower batch_tokens"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "oom", "lower batch_tokens"),
        (OSError(13, "Permission denied"), "error", "Permission denied"),
        (ZeroDivisionError("oh"), "error", "ZeroDivisionError: oh (the traceback is in"),
    ],
)
def test_whatever_happens_becomes_an_end_record_and_one_line(
    tmp_path, settings, monkeypatch, capsys, error, reason, words
):
    def fail(*_args: object) -> None:
        raise error

    monkeypatch.setattr("trainer.checkpoint.write", fail)
    assert run(settings(tmp_path, total_steps=1)) == 1
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and words in line
    end = records(tmp_path)[-1]
    assert (end["event"], end["reason"], end["exit_code"]) == ("end", reason, 1)
    assert (tmp_path / "traceback.txt").exists() == ("traceback" in words)


def test_a_full_disk_keeps_the_last_good_checkpoint(tmp_path, rows):
    """In a process of its own, with files limited to less than a checkpoint: the log goes on, the save fails."""
    code = (
        "import resource, sys, trainer.__main__ as m\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))\n"
        "sys.exit(m.main(sys.argv[1:]))"
    )
    config = tmp_path / "config.json"
    config.write_text(json.dumps(nested(tmp_path / "run", data={"path": str(rows)}, total_steps=1)))
    done = subprocess.run(
        [sys.executable, "-c", code, str(config)], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert "no room to write" in done.stderr.splitlines()[-1]
    assert records(tmp_path / "run")[-1]["reason"] == "disk-full"
    assert not list((tmp_path / "run" / "checkpoints").glob("step-*"))


def test_sigterm_ends_the_process_with_75_and_the_run_goes_on(tmp_path, rows):
    config = tmp_path / "config.json"
    run_dir = tmp_path / "run"
    config.write_text(json.dumps(nested(run_dir, data={"path": str(rows)}, total_steps=100_000, batch_tokens=256)))
    command = [sys.executable, "-m", "trainer", str(config)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for line in process.stdout:
            if line.startswith("step 1 of"):
                break
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 75
    assert err.splitlines()[-1] == "trainer: stopped by a signal; the same command goes on from here"
    stopped_at = events(run_dir, "train")[-1]["step"]
    assert events(run_dir, "checkpoint")[-1]["step"] == stopped_at
    assert run(checked(run_dir, data={"path": str(rows)}, total_steps=stopped_at + 1, batch_tokens=256)) == 0
    assert [r["step"] for r in events(run_dir, "train")] == list(range(1, stopped_at + 2))


def test_a_stop_before_the_first_step_leaves_a_run_that_begins_anew(tmp_path, settings, monkeypatch):
    evaluate = Run.evaluate

    def evaluate_and_stop(self: Run) -> None:
        evaluate(self)
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "evaluate", evaluate_and_stop)
        assert run(settings(tmp_path, total_steps=2)) == 75
    assert events(tmp_path, "train") == []
    assert run(settings(tmp_path, total_steps=2)) == 0
    assert [r.get("resumed_from_step") for r in events(tmp_path, "start")] == [None, None]
    assert [r["step"] for r in events(tmp_path, "train")] == [1, 2]


def test_epochs_become_steps(tmp_path, settings):
    assert run(settings(tmp_path, total_steps=None, epochs=2)) == 0
    steps = events(tmp_path, "train")
    assert steps[-1]["epoch"] == 2.0
    assert events(tmp_path, "start")[0]["config"]["total_steps"] == len(steps)
    # 30 rows in all, each once an epoch.
    assert sum(r["avg_batch_size"] for r in steps) == 60

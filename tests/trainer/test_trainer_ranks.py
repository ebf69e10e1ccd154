"""Several processes do what one does: the same losses, one log, one end."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from trainer import config as trainer_config
from trainer import launcher
from trainer.run import run

from .programs import exact_losses, together
from .trainer_setup import ROOT, by_two, checked, events, nested, write_rows

pytestmark = pytest.mark.slow

STEPS = 5


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> Path:
    """Among them a row so short that a batch of it alone has next to nothing to supervise."""
    text = (ROOT / "trainer" / "tiny_target" / "LICENSE").read_text()
    rows = [{"prompt": text[i : i + 9], "response": text[i + 9 : i + 11 + i % 47]} for i in range(0, 900, 31)]
    held_out = [{"prompt": "import ", "split": "eval", "max_new_tokens": 10}]
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.jsonl", rows + held_out)


def written(run_dir: Path, rows: Path, **changes) -> str:
    run_dir.mkdir()
    settings = {"data": {"path": str(rows)}, "batch_tokens": 128, "micro_batches": 3, "total_steps": STEPS}
    place = run_dir / "config.json"
    noise = {"kind": "gaussian", "std": 0.1}
    place.write_text(json.dumps(nested(run_dir, **{**settings, "noise": noise, "save_every": 2, **changes})))
    return str(place)


def losses(run_dir: Path) -> list[tuple[int, float, float]]:
    return [(r["step"], r["loss"], r["grad_norm"]) for r in events(run_dir, "train")]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def torchrun(*words: str) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def one_process(tmp_path_factory, rows) -> Path:
    run_dir = tmp_path_factory.mktemp("ranks") / "one"
    assert run(trainer_config.load(Path(written(run_dir, rows)))) == 0
    return run_dir


def test_two_processes_under_torchrun_are_one(tmp_path, rows, one_process):
    """Three batches a step, so that one process has two and the other one; responses and log are the first's."""
    run_dir = tmp_path / "two"
    torchrun("trainer", written(run_dir, rows))
    assert [r["world_size"] for r in events(run_dir, "start")] == [2]
    assert len(losses(run_dir)) == STEPS
    for two, one in zip(losses(run_dir), losses(one_process), strict=True):
        assert two == pytest.approx(one, abs=1e-6)
    weights = [load_file(d / "checkpoints" / f"step-{STEPS}" / "model.safetensors") for d in (run_dir, one_process)]
    assert all(float((weights[0][name] - weights[1][name]).abs().max()) < 1e-6 for name in weights[0])
    assert [r["event"] for r in events(run_dir, "end")] == ["end"]
    for key in ("tokens", "draft_tokens", "accuracy", "tokens_total"):
        assert [r[key] for r in events(run_dir, "train")] == [r[key] for r in events(one_process, "train")]


@pytest.mark.parametrize(
    ("dtype", "tolerance", "start"), [("float64", 1e-9, torchrun), ("float32", 1e-4, by_two)], ids=["torchrun", "two"]
)
def test_fifty_steps_of_two_processes_are_those_of_one(tmp_path, rows, random_folder, dtype, tolerance, start):
    """The same global batch: two micro-batches a step, of unequal length and weight, one for each process."""
    changes = {
        "target": str(random_folder), "num_draft_layers": 1, "data": {"path": str(rows), "num_eval": 0},
        "batch_tokens": 64, "micro_batches": 2, "total_steps": 50, "lr": 5e-3, "position_weight": "dpace",
        "noise": {"kind": "gaussian", "std": 0.1}, "sliding_layers": [0], "sliding_window": 9,
    }  # fmt: skip
    place, out = tmp_path / "config.json", tmp_path / "told"
    place.write_text(json.dumps(nested(tmp_path / "two", **changes)))
    start("tests.trainer.programs.exact_losses", str(place), str(out), dtype)
    first, second = (json.loads(out.with_suffix(f".{rank}").read_text()) for rank in (0, 1))
    assert len(first) == 50 and first == second
    alone = exact_losses.losses(checked(tmp_path / "one", **changes), getattr(torch, dtype))
    assert [loss for loss, _ in first] == pytest.approx([loss for loss, _ in alone], abs=tolerance)
    assert [norm for _, norm in first] == pytest.approx([norm for _, norm in alone], rel=tolerance * 10)
    # It is a run in which something happens.
    assert sum(loss for loss, _ in alone[-10:]) < 0.95 * sum(loss for loss, _ in alone[:10])


def test_our_own_launcher_stops_all_and_a_single_process_goes_on(tmp_path, rows, one_process):
    run_dir = tmp_path / "two"
    config = written(run_dir, rows, processes=2, total_steps=100_000)
    command = [sys.executable, "-m", "trainer", config]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        for line in process.stdout:
            if line.startswith("step 1 of"):
                break
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=100)
    assert process.returncode == 75, err
    assert err.count("stopped by a signal") == 1
    last = events(run_dir, "train")[-1]["step"]
    assert events(run_dir, "checkpoint")[-1]["step"] == last
    assert [(r["reason"], r["exit_code"]) for r in events(run_dir, "end")] == [("saved", 75)]
    told = json.loads(Path(config).read_text())
    Path(config).write_text(json.dumps({**told, "processes": 1, "total_steps": last + 1}))
    assert run(trainer_config.load(Path(config))) == 0
    assert [r["step"] for r in events(run_dir, "train")] == list(range(1, last + 2))
    # The number of processes is nothing to warn of; the other length of the run is.
    assert [r["reason"] for r in events(run_dir, "warn") if "resume" in r["reason"]] == [
        f"total_steps was 100000 before the resume and is {last + 1} now"
    ]


@pytest.mark.parametrize(
    ("codes", "code"), [((0, 0), 0), ((75, 75), 75), ((0, 3), 3), ((None, 1), 1), ((-9, None), 137)]
)
def test_one_that_fails_ends_the_others_and_tells_its_code(monkeypatch, codes, code):
    """None is one that waits for companions who never come."""
    monkeypatch.setattr(launcher, "_GRACE_S", 0.1)
    words = {None: "import time; time.sleep(60)", -9: "import os; os.kill(os.getpid(), 9)"}
    programs = [words.get(c, f"import sys; sys.exit({c})") for c in codes]
    processes = [subprocess.Popen([sys.executable, "-S", "-c", program]) for program in programs]
    assert launcher._wait(processes) == code
    assert all(process.poll() is not None for process in processes)


@pytest.mark.parametrize(
    ("processes", "device", "visible", "count"),
    [
        ("auto", "auto", None, 1),
        ("auto", "auto", "0,1", 2),
        ("auto", "cuda", "3", 1),
        ("auto", "cpu", "0,1", 1),
        (3, "cpu", None, 3),
        (1, "auto", "0,1", 1),
        ("auto", "auto", "", 1),
    ],
)
def test_the_number_of_processes(tmp_path, monkeypatch, processes, device, visible, count):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert launcher.num_processes(checked(tmp_path, processes=processes, device=device)) == count


def test_answers_and_features_of_two_processes_are_those_of_one(tmp_path, random_folder):
    """Either work is stopped once on the way; the answers of both turns of a row, and files byte for byte."""
    text = (ROOT / "trainer" / "tiny_target" / "LICENSE").read_text()
    told = [{"prompt": text[i : i + 4 + i % 5], "max_new_tokens": 4 + i} for i in range(14)]
    write_rows(tmp_path / "rows.jsonl", told)
    by_two("tests.trainer.programs.together", str(tmp_path), str(random_folder))
    alone = {"rows": tmp_path / "rows.jsonl", "target": random_folder}
    assert run(together.settings(tmp_path / "prepared_alone", kind="prepare", **alone)) == 0
    changes = {**alone, "kind": "capture", "teacher": "final_hidden", "rows": tmp_path / "prepared" / "sequences"}
    assert run(together.settings(tmp_path / "captured_alone", **changes)) == 0
    for name, kept in (("prepared", "sequences"), ("captured", "features")):
        files = sorted(file.name for file in (tmp_path / name / kept).iterdir())
        assert files == sorted(file.name for file in (tmp_path / f"{name}_alone" / kept).iterdir())
        for file in files:
            two, one = (tmp_path / f"{name}{end}" / kept / file for end in ("", "_alone"))
            assert two.read_bytes() == one.read_bytes(), file
        resumed = [r.get("resumed_from_step") for r in events(tmp_path / name, "start")]
        assert resumed == [None, 6 if name == "prepared" else resumed[1]] and resumed[1] < 14
        assert events(tmp_path / name, "train")[-1]["step"] == 14
        assert [r["event"] for r in events(tmp_path / name, "checkpoint")] == ["checkpoint"]

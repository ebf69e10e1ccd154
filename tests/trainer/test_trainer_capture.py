"""kind = "capture": the target's features on disk are those it would say, and training on them is the same training."""

import os
import signal
from pathlib import Path

import pytest
import torch

from trainer.batches import collate_rows
from trainer.capture import of
from trainer.captured import Captured, read_manifest
from trainer.progress import Progress
from trainer.run import run
from trainer.sequences import Sequences
from trainer.target import Target

from .test_trainer_run import signalled
from .trainer_setup import ROOT, checked, events, write_rows


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> Path:
    text = (ROOT / "trainer" / "tiny_target" / "LICENSE").read_text()
    train = [{"prompt": text[i : i + 5], "response": text[i + 5 : i + 12 + i % 47]} for i in range(0, 900, 31)]
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.jsonl", train)


def settings(run_dir: Path, rows: Path, target: Path, **changes):
    told = {"target": str(target), "target_layer_ids": [1, 3], "data": {"path": str(rows)}, "batch_tokens": 128}
    return checked(run_dir, **{**told, "total_steps": 10, "lr": 3e-3, **changes})


def losses(run_dir: Path) -> list[float]:
    return [r["loss"] for r in events(run_dir, "train")]


@pytest.mark.parametrize("teacher", ["tokens", "final_hidden"])
@pytest.mark.parametrize("batching", ["bucket", "pack"])
def test_training_on_a_capture_is_training_on_the_target(tmp_path, rows, random_folder, monkeypatch, teacher, batching):
    changes = {"teacher": teacher, "batching": batching, "noise": {"kind": "gaussian", "std": 0.1}}
    assert run(settings(tmp_path / "online", rows, random_folder, **changes)) == 0
    assert run(settings(tmp_path / "capture", rows, random_folder, kind="capture", **changes)) == 0
    place = tmp_path / "capture" / "features"
    with monkeypatch.context() as patch:
        patch.setattr(Target, "features", None)
        config = settings(tmp_path / "offline", rows, random_folder, features={"path": str(place)}, **changes)
        assert run(config) == 0
    assert losses(tmp_path / "offline") == pytest.approx(losses(tmp_path / "online"), rel=1e-4)
    log = events(tmp_path / "capture", "train")
    assert log[-1]["step"] == events(tmp_path / "capture", "start")[0]["config"]["total_steps"] == 30
    assert events(tmp_path / "capture", "checkpoint")[0]["bytes"] > (place / "features.bin").stat().st_size


def test_what_is_kept_is_what_the_target_says(tmp_path, rows, random_folder):
    config = settings(tmp_path / "capture", rows, random_folder, kind="capture", teacher="final_hidden")
    assert run(config) == 0
    target, sequences = Target(config), Sequences(tmp_path / "capture" / "sequences")
    captured = Captured(tmp_path / "capture" / "features", sequences.lengths, of(config, target, sequences))
    told = [[3], [29, 0], [7]]
    batch = captured.fill(collate_rows([[sequences[i] for i in row] for row in told], target.device), told)
    assert batch.features is not None and batch.features.final is not None
    alone = target.features(sequences[0].tokens[None].long(), final=True)
    begin = len(sequences[29])
    for kept, said in ((batch.features.taps, alone.taps), (batch.features.final, alone.final)):
        torch.testing.assert_close(kept[1, begin : begin + len(sequences[0])], said[0], rtol=1e-3, atol=1e-4)
    size = (tmp_path / "capture" / "features" / "features.bin").stat().st_size
    assert size == sequences.manifest.num_tokens * 3 * 24 * 4


def test_a_capture_that_is_stopped_goes_on(tmp_path, rows, random_folder, monkeypatch):
    config = settings(tmp_path / "cut", rows, random_folder, kind="capture")
    add = Progress.add

    def add_and_signal(self, lengths):
        add(self, lengths)
        if self.step > 8:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "add", add_and_signal)
        assert run(config) == 75
    done = read_manifest(tmp_path / "cut" / "features").done
    assert 8 < done < 30
    early = settings(tmp_path / "early", rows, random_folder, features={"path": str(tmp_path / "cut" / "features")})
    assert run(early) == 2
    assert run(config) == 0
    assert [r.get("resumed_from_step") for r in events(tmp_path / "cut", "start")] == [None, done]
    assert run(settings(tmp_path / "whole", rows, random_folder, kind="capture")) == 0
    made = [(tmp_path / name / "features" / "features.bin").read_bytes() for name in ("cut", "whole")]
    assert made[0] == made[1]
    before = (tmp_path / "cut" / "features" / "manifest.json").stat().st_mtime_ns
    assert run(config) == 0
    assert (tmp_path / "cut" / "features" / "manifest.json").stat().st_mtime_ns == before


def test_a_size_limit_leaves_the_rest_to_the_target_and_a_resume_is_exact(tmp_path, rows, random_folder):
    limit = {"features": {"max_gb": 200_000 / 2**30}}
    assert run(settings(tmp_path / "capture", rows, random_folder, kind="capture", **limit)) == 0
    place = tmp_path / "capture" / "features"
    count = read_manifest(place).count
    assert 10 < count < 30
    assert (place / "features.bin").stat().st_size <= 200_000
    said = [r["reason"] for r in events(tmp_path / "capture", "warn")]
    assert any(text.startswith(f"sequences left out: {30 - count} (beyond features.max_gb") for text in said)
    changes = {"features": {"path": str(place)}}
    assert run(settings(tmp_path / "online", rows, random_folder)) == 0
    assert run(settings(tmp_path / "whole", rows, random_folder, **changes)) == 0
    with signalled(4):
        assert run(settings(tmp_path / "cut", rows, random_folder, **changes)) == 75
    assert run(settings(tmp_path / "cut", rows, random_folder, **changes)) == 0
    assert losses(tmp_path / "cut") == losses(tmp_path / "whole")
    assert losses(tmp_path / "whole") == pytest.approx(losses(tmp_path / "online"), rel=1e-4)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"target_layer_ids": [0, 3]}, "with layer_ids [1, 3] and this run has [0, 3]"),
        ({"teacher": "final_hidden"}, "with has_final False and this run has True"),
        ({"dtype": "bfloat16"}, "with dtype float32 and this run has bfloat16"),
        ({"data": {"num_train": 9}}, "from the sequences of this run"),
    ],
)
def test_a_capture_of_something_else_is_refused_with_both_values(tmp_path, rows, random_folder, capsys, change, words):
    assert run(settings(tmp_path / "capture", rows, random_folder, kind="capture")) == 0
    capsys.readouterr()
    changes = {"features": {"path": str(tmp_path / "capture" / "features")}, **change}
    changes["data"] = {"path": str(rows), **changes.get("data", {})}
    assert run(settings(tmp_path / "run", rows, random_folder, **changes)) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and "captured " in line and words in line


def test_a_folder_without_a_capture_is_named(tmp_path, rows, random_folder, capsys):
    assert run(settings(tmp_path / "run", rows, random_folder, features={"path": str(tmp_path)})) == 2
    assert "holds no whole capture" in capsys.readouterr().err

"""kind = "evaluate": what it says of a drafter is what the run that made it said, whoever stands beside it."""

from pathlib import Path

import pytest
import torch

from trainer import export
from trainer.comparison import names
from trainer.drafts import Draft
from trainer.run import run
from trainer.target import Target

from .trainer_setup import ROOT, checked, events, write_rows

pytestmark = pytest.mark.slow

TINY = ROOT / "trainer" / "tiny_target"
# What an evaluation says apart from who and when.
OWN = {"event", "time", "seconds", "name", "path", "step"}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    text = (TINY / "LICENSE").read_text()
    train = [{"prompt": text[i : i + 9], "response": text[i + 9 : i + 30]} for i in range(0, 300, 31)]
    held_out = [{"prompt": p, "split": "eval", "max_new_tokens": 20} for p in ("import ", "class A", "def f(")]
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.jsonl", train + held_out)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, place) -> dict[str, Path]:
    """Two drafters of different layers, blocks and lengths of training; the second listens to other layers."""
    folder = tmp_path_factory.mktemp("trained")
    changes = {
        "a": {"block_size": 4, "total_steps": 12},
        "b": {"block_size": 6, "total_steps": 3, "num_draft_layers": 1, "target_layer_ids": [0, 3, 4]},
    }
    for name, change in changes.items():
        told = {"data": {"path": str(place)}, "lr": 3e-3, "eval": {"ddtree": "last", "num_prompts": 2}, **change}
        assert run(checked(folder / name, **told)) == 0
    return {name: folder / name / "checkpoints" / f"step-{c['total_steps']}" for name, c in changes.items()}


def settings(run_dir: Path, place: Path, *checkpoints: Path, **changes):
    told = {"kind": "evaluate", "data": {"path": str(place)}, "eval": {"ddtree": "last", "num_prompts": 2}}
    return checked(run_dir, **{**told, **changes}, checkpoints=[str(c) for c in checkpoints] or None)


def test_side_by_side_each_is_what_its_own_run_said(tmp_path, place, trained, capsys):
    assert run(settings(tmp_path, place, trained["a"], trained["b"])) == 0
    told = events(tmp_path, "eval")
    assert [(r["name"], r["step"], r["path"]) for r in told] == [
        ("a/step-12", 12, str(trained["a"])),
        ("b/step-3", 3, str(trained["b"])),
    ]
    for record, checkpoint in zip(told, trained.values(), strict=True):
        want = events(checkpoint.parents[1], "eval")[-1]
        assert {k: v for k, v in record.items() if k not in OWN} == {k: v for k, v in want.items() if k not in OWN}
        assert record["lossless"] == 1.0 and record["ddtree_tau_b64"] >= 1.0
    start = events(tmp_path, "start")[0]["config"]
    assert (start["kind"], start["target_layer_ids"], start["block_size"]) == ("evaluate", [0, 1, 3, 4], 6)
    assert events(tmp_path, "end")[0]["reason"] == "completed"
    assert not (tmp_path / "checkpoints").exists()
    out = capsys.readouterr().out
    assert "a/step-12: " in out and "prompt lookup" in out


def test_hidden_states_are_asked_for_once_for_all(tmp_path, place, trained, monkeypatch):
    asked = []
    features = Target.features

    def listening(self, tokens, begins=None, *, final=False):
        asked.append((list(self.layer_ids), tuple(tokens.shape)))
        return features(self, tokens, begins, final=final)

    monkeypatch.setattr(Target, "features", listening)
    told = {"eval": {"ddtree": "never", "num_prompts": 2}}
    assert run(settings(tmp_path / "both", place, trained["a"], trained["b"], **told)) == 0
    both = len(asked)
    assert {tuple(ids) for ids, _ in asked} == {(0, 1, 3, 4)}
    asked.clear()
    assert run(settings(tmp_path / "one", place, trained["a"], **told)) == 0
    assert len(asked) == both


def test_layers_of_one_pass_are_those_of_a_pass_of_their_own(tmp_path, tiny):
    tokens = torch.arange(40).view(2, 20)
    first, second = tiny.features_for(tokens, [[1, 3], [4, 0, 3]])
    assert torch.equal(first.taps, tiny.features(tokens).taps)
    assert torch.equal(second.taps, tiny.listening([4, 0, 3], 7).features(tokens).taps)


def test_a_drafter_of_another_format_says_the_same(tmp_path, place, trained):
    out = tmp_path / "exported"
    export.export(trained["a"], out, "speculators", TINY, "float32")
    assert run(settings(tmp_path / "run", place, trained["a"], out)) == 0
    ours, theirs = events(tmp_path / "run", "eval")
    assert theirs["step"] is None
    assert {k: v for k, v in ours.items() if k not in OWN} == {k: v for k, v in theirs.items() if k not in OWN}


def test_what_cannot_be_compared_is_one_line(tmp_path, place, trained, random_folder, capsys):
    no_eval = write_rows(tmp_path / "train_only.jsonl", [{"prompt": "a"}])
    for config, words in [
        (settings(tmp_path / "1", place), 'checkpoints: kind = "evaluate" needs at least one folder'),
        (settings(tmp_path / "2", place, tmp_path), "holds no drafter that can be read"),
        (
            settings(tmp_path / "3", place, trained["a"], target=str(random_folder)),
            "has hidden_size 160 and the target",
        ),
        (settings(tmp_path / "4", no_eval, trained["a"]), 'holds no row with "split": "eval" to evaluate on'),
    ]:
        assert run(config) == 2
        line = capsys.readouterr().err
        assert line.count("\n") == 1 and words in line
        assert events(Path(config["run_dir"]), "end")[0]["exit_code"] == 2


@pytest.mark.parametrize(
    ("paths", "want"),
    [
        (["/runs/a/checkpoints/step-5", "/runs/b/checkpoints/step-7"], ["a/step-5", "b/step-7"]),
        (["/runs/a/checkpoints/step-5", "/runs/a/checkpoints/step-7"], ["a/step-5", "a/step-7"]),
        (["/x/y/z/w"], ["z/w"]),
        (["/models/deep/one", "/runs/a/checkpoints/step-7"], ["models/deep/one", "runs/a/step-7"]),
    ],
)
def test_names_tell_apart(paths, want):
    assert names([Draft(Path(p), {}, {}) for p in paths]) == want

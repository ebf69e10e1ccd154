"""The self-checks pass on what is right, and each finds the fault that it is for."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from trainer import selfcheck
from trainer.blocks import Anchors, cut, visible
from trainer.config import load
from trainer.decode import DraftCache
from trainer.drafts import Draft
from trainer.model import attend_dense
from trainer.promises import SelfCheck
from trainer.target import Features, Target

from .trainer_setup import ROOT, nested, write_rows

pytestmark = pytest.mark.slow

CHECKS = ["taps", "leak", "labels", "export", "gap"]


@pytest.fixture
def config(tmp_path) -> Path:
    text = (ROOT / "trainer" / "tiny_target" / "LICENSE").read_text()
    place = write_rows(tmp_path / "rows.jsonl", [{"prompt": text[i : i + 30]} for i in (0, 400, 800)])
    config = tmp_path / "config.json"
    changes = {"sliding_layers": [1], "sliding_window": 20, "target_layer_ids": [1, 3]}
    config.write_text(json.dumps(nested(tmp_path / "run", data={"path": str(place)}, **changes)))
    return config


def verdicts(config: Path, capsys, code: int) -> dict[str, str]:
    assert selfcheck.main([str(config)]) == code
    lines = capsys.readouterr().out.splitlines()
    told = [re.fullmatch(r"(ok|FAIL) +(\w+) +(.*) \(\d+\.\d s\)", line) for line in lines]
    assert [match and match[2] for match in told] == CHECKS
    return {match[2]: match[1] for match in told if match}


def holds(config: Path, *names: str) -> list[bool]:
    """The verdicts of these checks alone."""
    checks = SelfCheck(load(config))
    return [getattr(checks, name)().holds for name in names]


def test_all_holds_and_nothing_is_written(config, capsys):
    assert verdicts(config, capsys, 0) == dict.fromkeys(CHECKS, "ok")
    assert not (config.parent / "run").exists()


def test_a_tap_off_by_one_is_found(config, monkeypatch):
    def features(self, tokens, begins=None, *, final=False):
        states = self.model(input_ids=tokens, output_hidden_states=True).hidden_states
        return Features(torch.cat([states[i] for i in self.layer_ids], dim=-1))

    monkeypatch.setattr(Target, "features", features)
    assert holds(config, "taps") == [False]


def test_a_look_at_the_anchors_own_feature_is_found(config, monkeypatch):
    def leaking(anchors, block_size, window):
        later = Anchors(anchors.positions + 1, anchors.valid)

        def attend(queries, context, block):
            return attend_dense(visible(later, context[0].shape[2], block_size, window))(queries, context, block)

        return attend

    monkeypatch.setattr("trainer.attention.attend_structured", leaking)
    assert holds(config, "taps", "leak") == [True, False]


def test_labels_of_the_neighbour_are_learnt_and_found(config, monkeypatch):
    def shifted(tokens, *rest):
        blocks = cut(tokens, *rest)
        return replace(blocks, labels=blocks.labels.roll(-1, dims=2))

    monkeypatch.setattr("trainer.step.cut", shifted)
    assert holds(config, "leak", "labels") == [True, False]


def test_an_export_that_loses_something_is_found(config, capsys, monkeypatch):
    drafter = Draft.drafter

    def lossy(self):
        again = drafter(self)
        with torch.no_grad():
            again.layers[0].self_attn.q_norm.weight.mul_(1.001)
        return again

    monkeypatch.setattr(Draft, "drafter", lossy)
    assert verdicts(config, capsys, 1) == {**dict.fromkeys(CHECKS, "ok"), "export": "FAIL"}


def test_decoding_with_features_one_place_off_is_found(config, monkeypatch):
    take = DraftCache.take

    def late(self, taps, starts):
        take(self, taps.roll(1, dims=1), starts)

    monkeypatch.setattr(DraftCache, "take", late)
    # It learns its texts and does not find them when it decodes, which `labels` notices too.
    assert holds(config, "leak", "labels", "gap") == [True, False, False]


def test_a_bad_config_and_prompts_without_an_answer_are_one_line(tmp_path, config, tiny, capsys):
    assert selfcheck.main([]) == 2
    told = json.loads(config.read_text())
    config.write_text(json.dumps({**told, "lr": -1}))
    assert selfcheck.main([str(config)]) == 2
    err = capsys.readouterr().err
    assert "usage: " in err and "lr: -1 is not allowed" in err


def test_without_torch_one_line_says_so(config):
    without = (
        "import sys; sys.modules['torch'] = None; from trainer import selfcheck; sys.exit(selfcheck.main(sys.argv[1:]))"
    )
    done = subprocess.run([sys.executable, "-c", without, config], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "cannot import what training needs" in done.stderr

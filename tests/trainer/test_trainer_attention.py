"""flex_attention reads what the dense mask lets it read, and where it cannot be used the run goes on without it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.attention import Attention, attend_flex
from trainer.blocks import draw_anchors, visible
from trainer.model import attend_dense
from trainer.run import run
from trainer.structured import attend_structured

from .test_trainer_packing import random_attention, rows_of_lengths
from .trainer_setup import ROOT, checked, events, write_rows


@settings(max_examples=6, deadline=None)
@given(rows_of_lengths, st.integers(1, 4), st.integers(2, 4), st.integers(0, 10**6), st.sampled_from([None, 2, 5]))
def test_flex_is_the_dense_one(rows, count, block_size, seed, window):
    """Forward alone: on a CPU it has no backward."""
    anchors, longest, heads = random_attention(rows, count, block_size, seed, head_dim=16, dtype=torch.float32)
    dense = attend_dense(visible(anchors, longest, block_size, window))(*heads)
    flex = attend_flex(anchors, longest, block_size, window)(*heads)
    torch.testing.assert_close(flex, dense, rtol=1e-5, atol=1e-5)


def test_auto_is_what_suits_the_machine(monkeypatch):
    anchors = draw_anchors(torch.ones(1, 9, dtype=torch.bool), 3, torch.Generator().manual_seed(0))
    (attend,) = Attention().attends(anchors, 9, 4, {None}).values()
    assert attend.__qualname__.startswith(attend_structured.__name__)
    (attend,) = Attention("dense").attends(anchors, 9, 4, {None}).values()
    assert attend.__qualname__.startswith(attend_dense.__name__)


def test_where_flex_cannot_be_used_that_is_told_once_and_the_run_is_the_same(tmp_path):
    """Really: on a CPU it refuses to have a backward."""
    text = (ROOT / "trainer" / "tiny_target" / "LICENSE").read_text()
    train = [{"prompt": text[i : i + 5], "response": text[i + 5 : i + 12 + i % 17]} for i in range(0, 400, 31)]
    place = write_rows(tmp_path / "rows.jsonl", train)
    losses = {}
    for kind in ("dense", "flex", "structured"):
        changes = {"data": {"path": str(place)}, "batch_tokens": 128, "total_steps": 3, "lr": 3e-3}
        assert run(checked(tmp_path / kind, attention=kind, **changes)) == 0
        losses[kind] = [r["loss"] for r in events(tmp_path / kind, "train")]
    said = [r["reason"] for r in events(tmp_path / "flex", "warn") if "attention" in r["reason"]]
    assert len(said) == 1 and said[0].startswith("attention: flex failed (NotImplementedError: FlexAttention does not")
    assert losses["flex"] == losses["dense"] == pytest.approx(losses["structured"], rel=1e-5)


def test_another_failure_is_none_of_flex(tmp_path):
    assert Attention("dense").give_up(ValueError("oh")) is None
    assert Attention().give_up(ValueError("oh")) is None

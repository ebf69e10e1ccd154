"""A step is the same in one batch or in many, and says what it was made of."""

import math

import pytest
import torch

from trainer.batches import collate
from trainer.blocks import Anchors, every_anchor
from trainer.data import Sample, answered
from trainer.engine import Engine
from trainer.head import head_scores
from trainer.loss import Mix, Scoring
from trainer.metrics import Tally
from trainer.model import Drafter
from trainer.optimizer import Optimizer
from trainer.ranks import Ranks
from trainer.records import ByLength, Window
from trainer.run import run
from trainer.step import Objective
from trainer.zlab import draft_shape

from .trainer_setup import case, checked, events, write_rows

CASE = case("case90_grad_accumulation.expected.json")
SAMPLES = [
    answered(torch.randint(0, 250, (n,), generator=torch.Generator().manual_seed(n)).tolist(), 3)
    for n in (25, 9, 14, 5)
]


@pytest.fixture
def engine(tmp_path, tiny, monkeypatch) -> tuple[Engine, Drafter]:
    monkeypatch.setattr("trainer.engine.draw_anchors", lambda response, *_: every_anchor(response, 2))
    return make_engine(tmp_path, tiny)


def make_engine(tmp_path, tiny, scoring=None, **changes) -> tuple[Engine, Drafter]:
    config = checked(tmp_path, **changes)
    drafter = Drafter(draft_shape(tiny, (None, None)), torch.Generator().manual_seed(0))
    objective = Objective(tiny, drafter, 4, scoring or Scoring(4.0, "streak"))
    return Engine(objective, Optimizer(drafter, config), Ranks(), config), drafter


def batches(*groups: list[Sample]):
    return iter([(number, collate(group, torch.device("cpu"))) for number, group in enumerate(groups)])


def test_unequal_batches_are_not_averaged_equally():
    def counted(batch):
        sums = torch.zeros(8 + 3, dtype=torch.float64)
        sums[0], sums[1] = batch["loss_sum"], batch["tokens"]
        return Tally(sums)

    parts = [counted(batch) for batch in CASE["micro_batches"]]
    assert (parts[0] + parts[1]).losses()["loss"] == CASE["right_logged_loss"]
    nothing = counted({"tokens": 0, "loss_sum": 0.0})
    assert nothing.losses()["loss"] is None
    assert (parts[0] + nothing + parts[1]).losses()["loss"] == CASE["right_logged_loss"]


@pytest.mark.parametrize(
    "groups", [[SAMPLES[:2], SAMPLES[2:]], [[s] for s in SAMPLES], [SAMPLES[1:], [answered([1, 2, 3], 3)], SAMPLES[:1]]]
)
def test_loss_and_gradient_are_the_same_in_one_two_or_four_batches(tmp_path, tiny, engine, groups):
    """The last form has a batch without any supervised slot."""
    whole, together = engine
    parted, apart = make_engine(tmp_path, tiny)
    a = whole.step(batches(SAMPLES), 1e-3, 0.0)
    b = parted.step(batches(*groups), 1e-3, 0.0)
    assert b.loss == pytest.approx(a.loss, abs=1e-5)
    assert b.grad_norm == pytest.approx(a.grad_norm, rel=1e-5)
    assert a.counts.slots == b.counts.slots and a.counts.right == b.counts.right
    for p, q in zip(together.parameters(), apart.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad, rtol=1e-4, atol=1e-6)
    assert a.made_of["tokens"] == 25 + 9 + 14 + 5 and a.made_of["padded"] == 4 * 25


def test_a_step_without_a_target_changes_nothing_and_has_no_loss(engine):
    engine, drafter = engine
    before = [p.detach().clone() for p in drafter.parameters()]
    step = engine.step(batches([answered([1, 2, 3], 3)]), 1e-3, 0.0)
    assert step.loss is None and step.is_finite and not step.stepped and step.grad_norm == 0.0
    assert all(torch.equal(p, q) for p, q in zip(drafter.parameters(), before, strict=True))


def test_a_run_counts_and_names_steps_without_a_target(tmp_path, monkeypatch):
    place = write_rows(tmp_path / "rows.jsonl", [{"prompt": "p" * 9, "response": "r" * 9}])
    none = Anchors(torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, 1, dtype=torch.bool))
    monkeypatch.setattr("trainer.engine.draw_anchors", lambda *_: none)
    assert run(checked(tmp_path / "run", data={"path": str(place)}, total_steps=2)) == 0
    assert [r["loss"] for r in events(tmp_path / "run", "train")] == [None, None]
    said = [r["reason"] for r in events(tmp_path / "run", "warn")]
    assert [s for s in said if "supervised" in s] == [
        f"step {n}: no slot is supervised; the step changed no weight ({n} such so far)" for n in (1, 2)
    ]


def test_bfloat16_computes_and_float32_keeps(tmp_path, tiny):
    steps = []
    for dtype in ("float32", "bfloat16"):
        engine, drafter = make_engine(tmp_path, tiny, draft_dtype=dtype)
        steps.append(engine.step(batches(SAMPLES), 1e-3, 0.0))
        assert all(p.dtype == p.grad.dtype == torch.float32 for p in drafter.parameters())
    exact, rough = steps
    assert rough.loss != exact.loss
    assert rough.loss == pytest.approx(exact.loss, rel=5e-3)
    assert rough.grad_norm == pytest.approx(exact.grad_norm, rel=5e-2)


def test_a_window_is_its_steps_summed_and_then_divided(tmp_path, tiny, engine):
    engine, _ = engine
    window = Window(4, torch.device("cpu"))
    steps = [engine.step(batches(group), 1e-3, 0.0) for group in (SAMPLES[:1], SAMPLES[1:])]
    for step in steps:
        window.add(step)
    fields = window.fields(math.inf, sparse=True)
    loss, weight = (sum(getattr(s.counts, name) for s in steps) for name in ("loss", "weight"))
    assert fields["loss"] == pytest.approx(loss / weight, rel=1e-12)
    assert fields["loss"] != pytest.approx(sum(s.loss for s in steps) / 2, rel=1e-3)
    blocks = sum(s.counts.blocks for s in steps)
    assert fields["accept_len"] == pytest.approx(1 + sum(s.counts.run for s in steps) / blocks, rel=1e-4)
    assert (fields["tokens"], fields["avg_batch_size"]) == (53, 2.0)
    assert fields["padding_eff"] == pytest.approx(53 / (25 + 3 * 14), rel=1e-4)
    assert fields["grad_norm"] == pytest.approx(sum(s.grad_norm for s in steps) / 2, rel=1e-4)


def test_a_step_without_a_target_has_no_gradient_to_be_averaged(tmp_path, engine):
    engine, _ = engine
    window = Window(4, torch.device("cpu"))
    empty, full = (engine.step(batches(group), 1e-3, 0.0) for group in ([answered([1, 2, 3], 3)], SAMPLES))
    window.add(empty)
    assert not window.is_empty and window.fields(math.inf, sparse=False)["grad_norm"] is None
    window.add(full)
    fields = window.fields(math.inf, sparse=False)
    assert fields["grad_norm"] == pytest.approx(full.grad_norm, rel=1e-4)
    assert fields["avg_batch_size"] == 2.5


def test_losses_are_told_by_the_length_of_their_sequences(tmp_path, tiny, monkeypatch):
    """Short and long ones, each as its own step would have it; a batch belongs where its longest sequence does."""
    monkeypatch.setattr("trainer.engine.draw_anchors", lambda response, *_: every_anchor(response, 2))

    def stepped(*groups):
        engine, _ = make_engine(tmp_path, tiny)
        engine._edges = [9, 14, 25]
        return engine.step(batches(*groups), 0.0, 0.0)

    long, short, middle, shortest = SAMPLES
    together, by_length = stepped([long], [short, shortest], [middle]), ByLength()
    by_length.add(together)
    by_length.add(stepped([long], [shortest]))
    parts = {"25": [[long], [long]], "9": [[short, shortest], [shortest]], "14": [[middle]]}
    want = {}
    for edge, groups in parts.items():
        counts = [stepped(group).counts for group in groups]
        want[edge] = pytest.approx(sum(c.loss for c in counts) / sum(c.weight for c in counts), rel=1e-4)
    assert by_length.take() == {"bucket_loss": want}
    assert by_length.take() == {}


def test_a_run_tells_the_losses_of_its_buckets(tmp_path):
    place = write_rows(tmp_path / "rows.jsonl", [{"prompt": "p" * 9, "response": "r" * n} for n in range(9, 40)])
    changes = {"batch_tokens": 64, "num_buckets": 3, "log_arrays_every": 30, "total_steps": 30}
    assert run(checked(tmp_path / "run", data={"path": str(place)}, **changes)) == 0
    *others, last = events(tmp_path / "run", "train")
    assert not any("bucket_loss" in r for r in others)
    assert set(last["bucket_loss"]) == {"27", "37", "48"}
    assert min(last["bucket_loss"].values()) < sum(r["loss"] for r in [*others, last]) / 30 < 9
    assert run(checked(tmp_path / "packed", data={"path": str(place)}, batching="pack", **changes)) == 0
    assert "bucket_loss" not in events(tmp_path / "packed", "train")[-1]


def test_a_run_logs_every_so_many_steps_and_what_is_left_at_its_end(tmp_path):
    place = write_rows(tmp_path / "rows.jsonl", [{"prompt": "p" * 9, "response": "r" * n} for n in range(9, 40)])
    config = checked(tmp_path / "run", data={"path": str(place)}, total_steps=7, log_every=3, batch_tokens=64)
    assert run(config) == 0
    steps = events(tmp_path / "run", "train")
    assert [r["step"] for r in steps] == [3, 6, 7]
    assert steps[-1]["tokens_total"] == sum(r["tokens"] for r in steps)


def test_scores_of_all_slots_never_exist_together():
    """65,536 slots against 2048 tokens are half a GiB of scores; what is there at a time is 2^22 of them."""
    head = torch.nn.Linear(8, 2048, bias=False).requires_grad_(False)
    hidden = torch.zeros(65536, 8, requires_grad=True)
    largest = 0

    class Largest(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            out = func(*args, **(kwargs or {}))
            largest = max(largest, out.numel() if isinstance(out, torch.Tensor) else 0)
            return out

    with Largest():
        scores = head_scores(head, hidden, torch.zeros(65536, dtype=torch.long), None, Mix())
        scores.loss.sum().backward()
    assert largest <= 2**22
    assert float(scores.ce.detach().mean()) == pytest.approx(math.log(2048), rel=1e-5)

"""A batch that does not fit into memory is skipped and told; the rest of its step is as if it had not been there."""

import errno
import json
import subprocess
import sys

import pytest
import torch

from trainer.batches import collate
from trainer.data import answered
from trainer.errors import MemoryShortError, is_out_of_memory
from trainer.faults import Faults
from trainer.run import run
from trainer.step import Objective

from .test_trainer_engine import SAMPLES, batches, make_engine
from .trainer_setup import ROOT, checked, events, nested, write_rows


@pytest.fixture
def without_room(monkeypatch):
    """Batches whose longest sequence has more than `limit` tokens run out of memory, half-way through the backward."""
    loss = Objective.loss
    limit = {"tokens": 20}

    class Full(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            raise torch.OutOfMemoryError("CUDA out of memory")

    def full(self, batch, features, anchors):
        if batch.tokens.shape[1] > limit["tokens"]:
            handle = self.drafter.layers[1].register_forward_pre_hook(
                lambda _layer, inputs: (Full.apply(inputs[0]), *inputs[1:])
            )
            try:
                return loss(self, batch, features, anchors)
            finally:
                handle.remove()
        return loss(self, batch, features, anchors)

    monkeypatch.setattr(Objective, "loss", full)
    return limit


def test_the_gradient_is_that_of_the_batches_that_fit(tmp_path, tiny, without_room):
    """The long one fails when half of its gradients are made: none of them may stay."""
    long, *short = SAMPLES
    engine, drafter = make_engine(tmp_path, tiny)
    step = engine.step(batches(short[:1], [long], short[1:]), 1e-3, 0.0)
    assert step.num_spilled == 1 and step.spilled == ["1 x 25 tokens"] and step.stepped
    other, alone = make_engine(tmp_path, tiny)
    want = other.step(
        iter([(0, collate(short[:1], torch.device("cpu"))), (2, collate(short[1:], torch.device("cpu")))]), 1e-3, 0.0
    )
    assert (step.loss, step.grad_norm) == (want.loss, want.grad_norm)
    assert all(torch.equal(p, q) for p, q in zip(drafter.parameters(), alone.parameters(), strict=True))
    assert step.made_of == {**want.made_of, "spilled": 1}


def test_a_run_skips_and_tells_and_goes_on(tmp_path, without_room):
    rows = [{"prompt": "p", "response": "r" * n} for n in (9, 10, 11, 40, 12, 13)]
    place = write_rows(tmp_path / "rows.jsonl", rows)
    changes = {"data": {"path": str(place)}, "batch_tokens": 42, "num_buckets": 6, "total_steps": 12}
    assert run(checked(tmp_path / "run", **changes)) == 0
    said = [r["reason"] for r in events(tmp_path / "run", "warn") if "memory" in r["reason"]]
    assert [text.partition(": ")[2] for text in said] == [
        f"a batch of 1 x 41 tokens did not fit into memory and was skipped ({n} such so far)" for n in (1, 2)
    ]
    steps = events(tmp_path / "run", "train")
    assert [r["step"] for r in steps] == list(range(1, 13))
    empty = [r for r in steps if r["loss"] is None]
    assert len(empty) == 2 and all(r["tokens"] == 0 and r["avg_seq_len"] is None for r in empty)


def test_a_run_in_which_nothing_fits_ends_and_says_what_to_do(tmp_path, without_room, capsys):
    without_room["tokens"] = 0
    place = write_rows(tmp_path / "rows.jsonl", [{"prompt": "p", "response": "r" * 9}])
    assert run(checked(tmp_path / "run", data={"path": str(place)}, total_steps=99, max_nonfinite_steps=3)) == 1
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and "no batch fitted into memory for 3 steps in a row, up to step 3" in line
    end = events(tmp_path / "run", "end")[0]
    assert (end["reason"], end["exit_code"]) == ("oom", 1)


def test_steps_with_some_room_between_do_not_add_up(tmp_path, tiny, without_room):
    engine, _ = make_engine(tmp_path, tiny)
    faults = Faults(2)
    for number in range(1, 7):
        group = SAMPLES[:1] if number % 2 else [answered(list(range(9)), 3)]
        step = engine.step(batches(group), 1e-3, 0.0)
        faults.judge(number, step, step.spilled, list)
    step = engine.step(batches(SAMPLES[:1]), 1e-3, 0.0)
    assert "4 such so far" in (faults.judge(7, step, step.spilled, list) or "")
    with pytest.raises(MemoryShortError):
        faults.judge(8, step, step.spilled, list)


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (MemoryError(), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (OSError(errno.ENOSPC, "No space left on device"), False),
        (ValueError("the word out of memory stands in a file"), False),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
    ],
)
def test_what_running_out_of_memory_looks_like(error, is_one):
    assert is_out_of_memory(error) == is_one


def test_a_long_batch_really_runs_out_of_memory_and_the_run_goes_on(tmp_path):
    """In a process whose address space is limited, after the first step, to little more than it has then."""
    rows = [{"prompt": "p", "response": "r" * n} for n in (9, 10, 11, 12, 900)]
    config = tmp_path / "config.json"
    changes = {"data": {"path": str(write_rows(tmp_path / "rows.jsonl", rows))}, "num_anchors": 512, "block_size": 16}
    steps = {"batch_tokens": 902, "num_buckets": 5, "total_steps": 10, "optimizer": "adamw"}
    config.write_text(json.dumps(nested(tmp_path / "run", **changes, **steps)))
    code = (
        "import resource, sys, trainer.__main__ as m\n"
        "from trainer.engine import Engine\n"
        "step = Engine.step\n"
        "def limited(self, *rest):\n"
        "    used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "    resource.setrlimit(resource.RLIMIT_AS, (used + 60_000_000,) * 2)\n"
        "    Engine.step = step\n"
        "    return step(self, *rest)\n"
        "Engine.step = limited\n"
        "sys.exit(m.main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(config)], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    said = [r["reason"] for r in events(tmp_path / "run", "warn") if "memory" in r["reason"]]
    assert said and "a batch of 1 x 901 tokens did not fit into memory and was skipped (1 such so far)" in said[0]
    assert len([r for r in events(tmp_path / "run", "train") if r["loss"] is not None]) >= 8
    assert events(tmp_path / "run", "end")[0]["reason"] == "completed"

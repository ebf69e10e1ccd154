"""One line of a trainer's output: which records it holds, and which it does not."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.store.shapes import SHAPES, detect, line_reader

MEGATRON = (
    " iteration      100/  500000 | consumed samples:        25600 | elapsed time per iteration (ms): 1234.5 |"
    " learning rate: 1.500E-04 | global batch size:   256 | lm loss: 6.100000E+00 | loss scale: 1.0 |"
    " grad norm: 0.987 | number of skipped iterations:   0 | number of nan iterations:   0 |"
)
FAIRSEQ = (
    "2026-05-18 16:04:44 | INFO | train_inner | epoch 002:    100 / 1000 loss=7.2, ppl=147.03, wps=12000.5, ups=1.5,"
    " bsz=64, num_updates=1100, lr=1e-05, gnorm=1.2, train_wall=60, wall=70"
)
FAIRSEQ_JSON = (
    '2026-05-18 16:04:44 | INFO | train_inner | {"epoch": 1, "update": 0.5, "loss": "7.2", "num_updates": "100",'
    ' "lr": "1e-05", "gnorm": "1.2", "train_wall": "60"}'
)


def read(text: str) -> list[dict[str, Any]]:
    parsed = line_reader("text")(text.encode())
    assert parsed.reason is None
    assert parsed.is_ignored == (not parsed.objects)
    return parsed.objects


@pytest.mark.parametrize(
    ("line", "some"),
    [
        (
            MEGATRON,
            {"iteration": 100, "lm_loss": 6.1, "learning_rate": 1.5e-4, "grad_norm": 0.987, "step_time_s": 1.2345},
        ),
        (f" [2026-05-18 16:04:44] {MEGATRON}", {"iteration": 100, "consumed_samples": 25600}),
        (" validation loss at iteration 1000 | lm loss value: 2.1E+00 | ", {"event": "eval", "lm_loss_value": 2.1}),
        (FAIRSEQ, {"epoch": 2, "num_updates": 1100, "loss": 7.2, "wps": 12000.5, "gnorm": 1.2}),
        ("epoch 001:    100 / 1000 loss=7.2, wps=12000", {"epoch": 1, "iter": 100, "loss": 7.2}),
        (FAIRSEQ_JSON, {"epoch": 1, "loss": "7.2", "num_updates": "100"}),
        ("| INFO | train | epoch 001 | loss 7.2 | num_updates 1000 | train_wall 60", {"event": "summary", "loss": 7.2}),
        ("| valid | epoch 001 | valid on 'valid' subset | loss 5.1 | num_updates 1000", {"event": "eval", "loss": 5.1}),
        ("iter 100: loss 2.3456, time 123.45ms, mfu 12.3%", {"iter": 100, "step_time_s": 0.12345, "mfu_pct": 12.3}),
        (
            "step 250: train loss 2.10, val loss 2.30",
            {"event": "eval", "step": 250, "train_loss": 2.1, "val_loss": 2.3},
        ),
        ("step:100/1000 train_loss:3.2 step_avg:12.5ms", {"step": 100, "train_loss": 3.2, "step_avg_s": 0.0125}),
        ("step 00100/21400 (0.47%) | loss: 3.2 | tok/sec: 1,000,000 |", {"step": 100, "loss": 3.2, "tok/sec": 1000000}),
        ("step     5 | loss: 10.95 | lr 1.2e-06 | dt: 300ms", {"step": 5, "loss": 10.95, "lr": 1.2e-6}),
        ("step    1/18865 | loss 11.009 (+nanz)| lr 8.57e-07 | 3056 ms", {"step": 1, "loss": 11.009, "lr": 8.57e-7}),
        ("Epoch: [1]  [  10/1000]  eta: 0:10:00  lr: 0.001  loss: 2.3 (2.5)", {"epoch": 1, "iter": 10, "loss": 2.3}),
        (
            "Epoch [2][50/1000]\tlr: 1.000e-03, eta: 1:00:00, loss: 2.5",
            {"epoch": 2, "iter": 50, "lr": 0.001, "loss": 2.5},
        ),
        ("[Epoch 1] [Batch 50/100] loss: nan", {"epoch": 1, "step": 50, "loss": math.nan}),
        ("Epoch 3: loss=2.1, val_loss=2.3, acc: 45%", {"epoch": 3, "loss": 2.1, "val_loss": 2.3, "acc": 0.45}),
        ("INFO:root:Step 7, Loss: -1,234.5, Mem: 512MiB", {"step": 7, "loss": -1234.5, "mem_peak_gb": 0.5}),
        ("[rank3]: step: 7 loss: 2.0", {"step": 7, "loss": 2.0, "rank": 3}),
        ("[3]: step: 7 loss: 2.0", {"rank": 3}),
        ("3: step: 7 loss: 2.0", {"rank": 3}),
        ("[1,3]<stdout>: step: 7 loss: 2.0", {"rank": 3}),
        ("[default3]:step: 7 loss: 2.0", {"rank": 3}),
        ("[rank3]:{'loss': 2.0, 'rank': 5}", {"rank": 5}),
    ],
)
def test_a_line_of_figures(line: str, some: dict[str, Any]) -> None:
    [record] = read(line)
    assert {key: str(record[key]) for key in some} == {key: str(value) for key, value in some.items()}
    assert ("event" in record) == ("event" in some)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[rank0]:NCCL version 2.30",
        "Saved checkpoint at step 100, loss: 2.3",
        "Best checkpoint: step 100, loss 2.3",
        "best loss 2.3 at step 100",
        "Resuming from step 100 (loss=2.3)",
        "  train_loss               =     1.6000",
        "loss 2.3 is what it was at step 5",
        "time per step: 5, loss: 2.3",
        "step 5",
        "  1%|          | 10/850 [00:12<16:01, 1.15s/it, loss=2.3]",
        "Epoch 0: 100%|##########| 100/100 [00:10<00:00, 9.8it/s, v_num=0, train_loss=2.3]",
        "Model config LlamaConfig {",
        '  "rope_scaling": {"type": "linear"},',
        "{}",
        "{1: 2.0}",
        "f'{self.loss}' {",
        "Traceback (most recent call last):",
    ],
)
def test_a_line_that_tells_of_nothing_measured(line: str) -> None:
    assert read(line) == []


@pytest.mark.parametrize(
    ("line", "record"),
    [
        ("{'loss': 1, 'b': True, 'n': None}", {"loss": 1, "b": True, "n": None}),
        ("{'loss': 1, 't': (1, 2), 'l': [1, 2,]}", {"loss": 1, "t": [1, 2], "l": [1, 2]}),
        ("{'loss': tensor(0.5, device='cuda:0'), 'lr': np.float64(1e-05)}", {"loss": 0.5, "lr": 1e-5}),
        ("{'loss': tensor(2.), 'gap': -inf}", {"loss": 2.0, "gap": -math.inf}),
        (r"""{'loss': 1, 'a': 'it\'s "q" \n é \x41\u00e9'}""", {"loss": 1, "a": 'it\'s "q" \n é Aé'}),
        ("""{'loss': 1, "k": "don't"}""", {"loss": 1, "k": "don't"}),
        ("2026-01-01 12:00:00,123 - INFO - __main__ - {'loss': 1.5, 'step': 3}", {"loss": 1.5, "step": 3}),
        ("[INFO|trainer.py:2345] 2026-01-01 >> {'loss': 1.5}", {"loss": 1.5}),
        ('Step 100/200: {"loss": 2.0}', {"loss": 2.0, "step": 100}),
        ("Epoch 2, step 10: {'loss': 2.0, 'step': 7}", {"loss": 2.0, "step": 7}),
        ("Validation: {'loss': 2.0}", {"event": "eval", "loss": 2.0}),
        ("[eval] step 7 {'loss': 2.0}", {"event": "eval", "loss": 2.0, "step": 7}),
        ("args: {'lr': 0.1, 'epochs': 3, 'out': 'x'}", {"event": "note", "lr": 0.1, "epochs": 3, "out": "x"}),
        ("{'flops': 12345678901234567890123, 'loss': '1.75'}", {"flops": 12345678901234567890123, "loss": "1.75"}),
        (" 12%|#  | 100/850 [00:01<00:10]\r 50%|## | 2/4 [00:01]\r{'eval_loss': 1.0}", {"eval_loss": 1.0, "step": 100}),
        ("Evaluating:  50%|####  | 2/4 [00:01]{'eval_loss': 1.0}", {"event": "eval", "eval_loss": 1.0}),
        ("Epoch 2:  10%|# | 10/100 [00:01]{'loss': 2.0}", {"loss": 2.0, "step": 10, "epoch": 2}),
        ("\x1b[31m{'loss': \x1b[1m2.0\x1b[0m}\x1b]8;;http://x\x07", {"loss": 2.0}),
        ("\ufeff\0\0{'loss': 2.0}\0\r", {"loss": 2.0}),
    ],
)  # fmt: skip
def test_a_dict_somewhere_on_the_line(line: str, record: dict[str, Any]) -> None:
    assert read(line) == [record]


def test_what_is_torn_is_told() -> None:
    reader = line_reader("text")
    torn = reader(b'{"step": 4, "lo{"step": 5, "loss": 1.ss": 1.7}6}')
    assert (torn.objects, torn.reason) == ([], "a record that is cut off, or mixed up with another")
    half = reader(b"{'loss': 1.0}{'loss': 2.")
    assert (half.objects, half.notes) == ([{"loss": 1.0}], ("another record of this line is cut off, and is lost",))
    odd = reader(b'{"loss": 1, "loss": 2, "note": "\xff"}')
    assert odd.objects == [{"loss": 2, "note": "\ufffd"}]
    assert odd.notes == ("key 'loss' stands twice: its last value counts", "bytes that are not UTF-8 were replaced")


@pytest.mark.parametrize(
    "line",
    [
        b"{" * 400_000,
        b'{"a":' * 80_000,
        b"{'" * 200_000,
        b"\\'{'" * 100_000,
        b"loss: " + b" " * 400_000,
        b"1%|" * 130_000 + b"{",
        b"\x1b]" * 200_000 + b"{",
    ],
    ids=lambda line: repr(line[:12]),
)
def test_a_long_line_of_signs_is_no_trap(line: bytes) -> None:
    assert line_reader("text")(line).is_ignored


def test_a_line_of_four_megabytes_is_read() -> None:
    note = "x" * (4 << 20)
    assert read(f'{{"step": 3, "loss": 2.0, "note": "{note}"}}') == [{"step": 3, "loss": 2.0, "note": note}]


figures = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70)
records = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6),
    figures | st.none() | st.booleans() | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    max_size=4,
).map(lambda record: {"loss": 2.5, "step": 7, "event": "train", **record})
# Nothing that ends a line, and no brace, quote or escape that the record could be taken for a part of.
words = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\n\r{}'\"\\\x1b\0\ufeff\u2028"), max_size=40
)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_an_error(raw: bytes) -> None:
    for shape in SHAPES:
        parsed = line_reader(shape)(raw)
        assert not (parsed.objects and parsed.reason)
        assert not (parsed.is_ignored and (parsed.objects or parsed.reason))
    assert detect(raw) in SHAPES


@given(st.text("{}'\":,()[]\\ \r\x1bn1e.-%|/ losstep", max_size=60))
def test_any_signs_are_read_without_an_error(text: str) -> None:
    for record in line_reader("text")(text.encode()).objects:
        assert record


@given(before=words, record=records, after=words)
def test_a_record_is_found_behind_any_words(before: str, record: dict[str, Any], after: str) -> None:
    assert line_reader("text")(f"{before} {json.dumps(record)} {after}".encode()).objects == [
        {**record, **({"rank": rank} if (rank := rank_of(before)) is not None and "rank" not in record else {})}
    ]


def rank_of(words: str) -> int | None:
    """What stands before a line as `3: `, as these words may by chance."""
    head = words.lstrip()
    digits = head.split(":")[0]
    is_rank = ":" in head and digits.isdecimal() and len(digits) <= 5 and f"{head} "[len(digits) + 1] in " \t"
    return int(digits) if is_rank else None


@given(record=records)
def test_python_prints_what_is_read_back(record: dict[str, Any]) -> None:
    assert read(f"INFO {record!r}") == [record]


@given(st.lists(records, min_size=1, max_size=4), st.sampled_from([repr, json.dumps]))
def test_records_on_one_line_are_as_many_as_were_printed(printed: list[dict[str, Any]], write: Any) -> None:
    assert read("".join(map(write, printed))) == printed


@pytest.mark.parametrize(
    ("head", "shape"),
    [
        (b"", "jsonl"),
        (b'{"step": 1}\n', "jsonl"),
        (b'\xef\xbb\xbf{"step": 1}\r\n', "jsonl"),
        (b'\0\0\0{"step": 1}\n', "jsonl"),
        (b'{"step": 1}\nTraceback:\n  File x\n  File y\n', "jsonl"),
        (b'garbage\n{"step": 1}\n{"step": 2}\n', "jsonl"),
        (b"{'loss': 2.0}\n", "text"),
        (b'INFO {"loss": 2.0}\n', "text"),
        (b"Loading checkpoint shards\n" * 9, "text"),
        (b'pip install x\nuse cuda\n{"step": 1}\n', "text"),
        (b'{"log_history": [], "epoch": 1}', "trainer_state"),
        (b'{\n  "epoch": 1,\n  "log_history": [\n {"loss": 1}', "trainer_state"),
        (b'[\n  {"loss": 1},', "trainer_state"),
        (b'{"step": 1}\n{"log_history": [1]}\n', "jsonl"),
    ],
)
def test_a_shape_is_seen_from_the_content(head: bytes, shape: str) -> None:
    assert detect(head) == shape

"""Which file is a script's log; and what a person gives its environment."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.errors import UsageError
from dflash_tui.masking import masked
from dflash_tui.remote.follow import LOG, Chunk, log_source
from dflash_tui.run_env import read_env_file, run_env
from dflash_tui.runs import Cursor, RunRecord
from dflash_tui.script_log import settled

pytestmark = pytest.mark.slow

RUN = RunRecord("mine", "mine", "script", host="box", path="/far/mine")
PRINTED = "attempts/1/output.log"
JSONL = b'{"step": 1, "loss": 2.0}\n'


def chunk(stream: str, data: bytes, before: int = 0, reset: str | None = None) -> Chunk:
    return Chunk(stream, data, Cursor(before + len(data), 7, "a"), reset)


def test_the_first_record_decides() -> None:
    printing = chunk(PRINTED, b"Loading\nstep 1: reading the data\n")
    assert settled(RUN, [printing]) == RUN
    assert settled(RUN, [chunk(LOG, b""), printing]) == RUN
    found = settled(RUN, [chunk(LOG, JSONL), chunk(PRINTED, b"{'step': 1, 'loss': 2.0}\n")])
    assert (found.log, found.shape, log_source(found)) == (f"/far/mine/{LOG}", "jsonl", None)
    found = settled(RUN, [chunk(PRINTED, b"Loading\n\x1b[1mstep: 3  loss: 2.1\x1b[0m\n", 40)])
    assert (found.log, found.shape, log_source(found)) == (f"/far/mine/{PRINTED}", "text", "output")
    # And nothing changes it afterwards.
    assert settled(found, [chunk(PRINTED, b"{'step': 2, 'loss': 2.0}\n")]) == found


def test_a_log_that_was_named_is_read_as_it_looks() -> None:
    named = RunRecord("mine", "mine", "script", host="box", path="/far/mine", log="/data/out.log")
    assert settled(named, [chunk(PRINTED, b"{'step': 1, 'loss': 2.0}\n")]) == named
    assert settled(named, [chunk(LOG, JSONL)]) == named
    assert settled(named, [chunk(LOG, b"step: 1  loss: 2.0\n")]).shape == "text"
    # What comes later, or after the file was made anew, says nothing new.
    assert settled(named, [chunk(LOG, b"step: 1  loss: 2.0\n", 500)]) == named
    assert settled(named, [chunk(LOG, b"step: 1  loss: 2.0\n", 0, "rotated")]) == named
    assert log_source(named) == "/data/out.log"


def test_an_environment_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("# mine\nexport A=1\n\nB = 'two words' \nC=\"x=y\"\nD=\nE='it's\nF=$HOME\n")
    expected = {"A": "1", "B": "two words", "C": "x=y", "D": "", "E": "'it's", "F": "$HOME"}
    assert run_env(file, None) == expected
    assert run_env(file, "0,1") == {**expected, "CUDA_VISIBLE_DEVICES": "0,1"}
    for gpus in ("", "0,", "a", "0,0", "-1", "0 1"):
        with pytest.raises(UsageError, match="--gpus"):
            run_env(None, gpus)
    file.write_text("GOOD=1\n1BAD=s3cret\n")
    with pytest.raises(UsageError, match=r"\.env:2: is no line") as error:
        read_env_file(file)
    assert "s3cret" not in str(error.value)
    for bad in (tmp_path / "none", tmp_path):
        with pytest.raises(UsageError, match="cannot be read"):
            read_env_file(bad)


@given(
    st.dictionaries(
        st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,9}", fullmatch=True),
        st.from_regex(r"[!-&(-~]*", fullmatch=True),
        max_size=4,
    )
)
def test_any_plain_value_survives(tmp_path_factory: pytest.TempPathFactory, env: dict[str, str]) -> None:
    file = tmp_path_factory.getbasetemp() / "any.env"
    file.write_text("".join(f"{name}='{value}'\n" for name, value in env.items()))
    assert read_env_file(file) == env


def test_secrets_are_masked_and_nothing_else_is() -> None:
    words = ["train.py", "--lr=6e-4", "--num-tokens", "4096", "--api-key", "abc", "--hf_token=abc", "WANDB_API_KEY=abc"]
    words += [
        "https://me:pw@host/x",
        "--tokenizer",
        "qwen",
        "hf_abcdefghijklmnop",
        "--password",
        "--verbose",
        "monkey=1",
    ]
    assert masked(words) == [
        "train.py", "--lr=6e-4", "--num-tokens", "4096", "--api-key", "***", "--hf_token=***", "WANDB_API_KEY=***",
        "https://***@host/x", "--tokenizer", "qwen", "***", "--password", "--verbose", "monkey=1",
    ]  # fmt: skip

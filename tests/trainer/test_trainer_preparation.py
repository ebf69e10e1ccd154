"""kind = "prepare": answers by the target in this process, or by a server over real HTTP, kept over every stop."""

import copy
import json
import os
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from trainer import selfcheck
from trainer.dataset import build
from trainer.decode import Rows, greedy
from trainer.errors import ConfigError
from trainer.run import run
from trainer.sequences import Sequences

from .test_trainer_data import THINKER
from .test_trainer_run import losses
from .trainer_setup import checked, events, random_target, write_rows

PROMPTS = ["def f", "import ", "class A", "x = ", "for i", "while", "return", "if a:"]
ROWS: list[dict[str, Any]] = [{"prompt": p, "max_new_tokens": 4 + i} for i, p in enumerate(PROMPTS)]
HELD_OUT = {"prompt": "try:", "max_new_tokens": 6, "split": "eval"}


class Completions(ThreadingHTTPServer):
    """Speaks what vLLM speaks of OpenAI's protocol, and answers as the tiny target does.

    `faults` are taken one a request: a status, or bytes to send instead of an answer.
    """

    daemon_threads = True

    def __init__(self, target) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.target, self.says_tokens = target, True
        self.faults: list[int | bytes] = []
        self.asked: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()
        self.on_request = lambda _number: None
        self.lock, self.running, self.most_running = threading.Lock(), 0, 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        with self.lock:
            tokens = greedy(self.target, [body["prompt"]], [body["max_tokens"]])[0].tokens
        ended = tokens[-1:] == [258]
        choice: dict[str, Any] = {"text": bytes(t for t in tokens if t < 256).decode("latin-1")}
        if self.says_tokens:
            choice["token_ids"] = tokens
        return {"choices": [{**choice, "finish_reason": "stop" if ended else "length"}]}


class Handler(BaseHTTPRequestHandler):
    server: Completions

    def do_GET(self) -> None:
        self.send(200, json.dumps({"data": [{"id": "tiny"}, {"id": "other"}]}).encode())

    def do_POST(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.asked.append(body)
            server.keys.add(self.headers["Authorization"])
            number, fault = len(server.asked), server.faults.pop(0) if server.faults else None
            server.running += 1
            server.most_running = max(server.most_running, server.running)
        server.on_request(number)
        status, answer = (fault, b"no") if isinstance(fault, int) else (200, fault)
        if answer is None:
            answer = json.dumps(server.answer(body)).encode()
        with server.lock:
            server.running -= 1
        self.send(status, answer)

    def send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def server(tiny, monkeypatch) -> Iterator[Completions]:
    monkeypatch.setattr("trainer.server._FIRST_WAIT_S", 0.001)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server = Completions(tiny)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def rows(tmp_path) -> Path:
    return write_rows(tmp_path / "rows.jsonl", [*ROWS, HELD_OUT])


def settings(run_dir: Path, rows: Path, data: dict[str, Any] | None = None, **changes):
    return checked(run_dir, kind="prepare", data={"path": str(rows), "generate_batch": 3, **(data or {})}, **changes)


def tokens_of(run_dir: Path) -> list[tuple[list[int], list[bool]]]:
    return [(s.tokens.tolist(), s.response.tolist()) for s in Sequences(run_dir / "sequences")]


def written(tiny) -> list[tuple[list[int], list[bool]]]:
    """What must come out: every prompt with what the target writes behind it."""
    want = []
    for row in ROWS:
        prompt = list(row["prompt"].encode())
        answer = greedy(tiny, [prompt], [row["max_new_tokens"]])[0].tokens
        want.append((prompt + answer, [False] * len(prompt) + [True] * len(answer)))
    return want


def test_in_process_it_writes_what_training_would_have_written(tmp_path, tiny, rows, monkeypatch):
    monkeypatch.setattr("trainer.progress._SECONDS_BETWEEN_RECORDS", 0)
    prepared = tmp_path / "prepared"
    assert run(settings(prepared, rows, run_id="p")) == 0
    assert tokens_of(prepared) == written(tiny)
    log = [(r["event"], r.get("step")) for r in map(json.loads, (prepared / "train_log.jsonl").open())]
    assert log == [("start", None), ("train", 3), ("train", 6), ("train", 8), ("checkpoint", 8), ("end", None)]
    num_answer_tokens = sum(sum(response) for _, response in written(tiny))
    steps = events(prepared, "train")
    assert sum(r["tokens"] for r in steps) == num_answer_tokens
    assert all(r["tok_per_sec"] > 0 for r in steps)
    start = events(prepared, "start")[0]
    assert (start["run_id"], start["config"]["kind"], start["config"]["total_steps"]) == ("p", "prepare", 8)
    manifest = Sequences(prepared / "sequences").manifest
    assert (manifest.num_sequences, manifest.num_response_tokens) == (8, num_answer_tokens)

    train = {"total_steps": 4, "batch_tokens": 64}
    assert run(checked(tmp_path / "by_rows", data={"path": str(rows)}, **train)) == 0
    assert run(checked(tmp_path / "by_folder", data={"path": str(prepared / "sequences")}, **train)) == 0
    assert losses(tmp_path / "by_rows") == losses(tmp_path / "by_folder")
    hashes = [events(tmp_path / name, "start")[0]["data_hash"] for name in ("by_rows", "by_folder")]
    assert hashes[0] == hashes[1]
    assert [r["n_samples"] for r in events(tmp_path / "by_folder", "eval")] == [1, 1]
    assert not (tmp_path / "by_folder" / "sequences").exists()


def test_sequences_are_tokenised_once_and_mapped(tmp_path, rows, monkeypatch):
    assert run(settings(tmp_path / "run", rows)) == 0
    made = (tmp_path / "run" / "sequences" / "manifest.json").stat().st_mtime_ns

    def never(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("rows were read again")

    monkeypatch.setattr("trainer.dataset.read_talks", never)
    assert run(settings(tmp_path / "run", rows)) == 0
    assert (tmp_path / "run" / "sequences" / "manifest.json").stat().st_mtime_ns == made
    sequences = Sequences(tmp_path / "run" / "sequences")
    maps = Path("/proc/self/maps")
    assert not maps.exists() or str(tmp_path / "run" / "sequences" / "tokens.bin") in maps.read_text()
    assert sequences[2].tokens.untyped_storage().data_ptr() == sequences[0].tokens.untyped_storage().data_ptr()
    assert [len(s) for s in sequences[1:3]] == sequences.lengths[1:3]


@pytest.mark.parametrize("says_tokens", [True, False])
def test_a_server_writes_what_the_process_would(tmp_path, tiny, rows, server, says_tokens, monkeypatch):
    """With tokens in the answer, as vLLM has them, or with its text alone."""
    monkeypatch.setenv("OPENAI_API_KEY", "sesame")
    server.says_tokens = says_tokens
    assert run(settings(tmp_path / "run", rows, {"server": server.url, "server_requests": 4})) == 0
    assert tokens_of(tmp_path / "run") == written(tiny)
    assert server.keys == {"Bearer sesame"}
    assert 1 < server.most_running <= 4
    assert {(body["model"], body["temperature"]) for body in server.asked} == {("tiny", 0)}
    prompts = sorted(bytes(body["prompt"]).decode() for body in server.asked)
    assert prompts == sorted(PROMPTS)
    text = (tmp_path / "run" / "train_log.jsonl").read_text()
    assert "sesame" not in text and server.url in text


def test_a_busy_server_is_asked_again(tmp_path, tiny, rows, server):
    server.faults = [503, 429, b"{", 500]
    assert run(settings(tmp_path / "run", rows, {"server": server.url, "server_requests": 2})) == 0
    assert tokens_of(tmp_path / "run") == written(tiny)
    assert len(server.asked) == len(ROWS) + 4


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ([503] * 99, "gave no answer in 8 tries (503"),
        ([400], "refused a prompt of 5 tokens (400"),
        ([b'{"choices": []}'], "answers as no completion server does"),
    ],
)
def test_a_server_that_fails_ends_the_run_and_a_resume_asks_for_the_rest(
    tmp_path, tiny, rows, server, capsys, faults, words
):
    data = {"server": server.url, "server_requests": 1}
    server.on_request = lambda number: number == 3 and server.faults.extend(faults)
    write_rows(rows, [*ROWS[:3], {**ROWS[4]}, *ROWS[3:4], *ROWS[5:], HELD_OUT])
    assert run(settings(tmp_path / "run", rows, data)) == 1
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and words in line
    assert events(tmp_path / "run", "end")[-1]["reason"] == "error"
    assert not (tmp_path / "run" / "sequences").exists()
    server.faults.clear()
    server.on_request = lambda _number: None
    server.asked.clear()
    assert run(settings(tmp_path / "run", rows, data)) == 0
    assert len(server.asked) == len(ROWS) - 3
    assert sorted(tokens_of(tmp_path / "run")) == sorted(written(tiny))
    assert [r.get("resumed_from_step") for r in events(tmp_path / "run", "start")] == [None, 3]
    assert events(tmp_path / "run", "train")[-1]["step"] == len(ROWS)


def test_a_stopped_run_goes_on_where_it_was(tmp_path, tiny, rows, server):
    data = {"server": server.url, "server_requests": 1}
    server.on_request = lambda number: number == 5 and os.kill(os.getpid(), signal.SIGTERM)
    assert run(settings(tmp_path / "run", rows, data)) == 75
    end = events(tmp_path / "run", "end")[-1]
    assert (end["reason"], end["exit_code"]) == ("saved", 75)
    asked = len(server.asked)
    assert asked < len(ROWS)
    server.on_request = lambda _number: None
    assert run(settings(tmp_path / "run", rows, data)) == 0
    # Only what was under way when the run stopped is asked for twice.
    assert len(server.asked) <= len(ROWS) + 1
    assert tokens_of(tmp_path / "run") == written(tiny)


@pytest.mark.parametrize("kind", ["prepare", "train"])
def test_a_stop_does_not_wait_for_the_answers_of_a_batch(tmp_path, tiny, rows, monkeypatch, kind):
    """All are in one batch. The signal comes behind its third token, and no other token is written."""
    config = checked(tmp_path / "run", kind=kind, data={"path": str(rows)}, total_steps=1, batch_tokens=64)
    take, passes = Rows.take, []

    def take_and_signal(*words, **named):
        passes.append(1)
        if len(passes) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return take(*words, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Rows, "take", take_and_signal)
        assert run(config) == 75
    assert len(passes) == 3 and events(tmp_path / "run", "end")[-1]["reason"] == "saved"
    assert run(config) == 0
    assert tokens_of(tmp_path / "run") == written(tiny)


def test_a_stop_does_not_wait_for_a_server_that_lets_wait(tmp_path, tiny, rows, server, monkeypatch):
    """One answer is there when the signal comes; the others are never given."""
    monkeypatch.setattr("trainer.server._LOOK_S", 0.01)
    over = threading.Event()

    def hold(number: int) -> None:
        if number == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        if number > 1:
            over.wait(60)

    server.on_request = hold
    assert run(settings(tmp_path / "run", rows, {"server": server.url, "server_requests": 1})) == 75
    assert not over.is_set() and events(tmp_path / "run", "end")[-1]["reason"] == "saved"
    over.set()
    server.on_request = lambda _number: None
    assert run(settings(tmp_path / "run", rows, {"server": server.url})) == 0
    assert tokens_of(tmp_path / "run") == written(tiny)
    assert [r.get("resumed_from_step") for r in events(tmp_path / "run", "start")] == [None, 1]


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ("hello", "answers as no completion server does"),
        ({"text": None}, "answers as no completion server does"),
        ({"token_ids": 5}, "answers as no completion server does"),
        (
            {"token_ids": [3, 272]},
            "answers with token 272, and those of the target are 0 to 271; let it run the target",
        ),
        ({"token_ids": [-1]}, "answers with token -1"),
        ({"token_ids": ["a"]}, "answers with token 'a'"),
    ],
)
def test_a_server_that_runs_something_else_is_named(tmp_path, server, rows, capsys, choice, words):
    server.answer = lambda _body: {"choices": [choice]}
    assert run(settings(tmp_path / "run", rows, {"server": server.url, "server_requests": 2})) == 1
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and words in line


def test_who_is_not_there_is_named(tmp_path, rows, server, tiny, random_folder, capsys):
    gone = "http://127.0.0.1:9/v1"
    made = tmp_path / "made"
    assert run(settings(made, rows)) == 0
    capsys.readouterr()
    for config, words in [
        (settings(tmp_path / "1", rows, {"server": gone}), f"data.server: {gone}/models does not answer"),
        (settings(tmp_path / "2", rows, {"server": server.url, "server_model": "x"}), "'x' is not on"),
        (
            checked(
                tmp_path / "3", target=str(random_folder), data={"path": str(made / "sequences")}, num_draft_layers=1
            ),
            "were made for another target",
        ),
        (checked(tmp_path / "4", data={"path": str(tmp_path)}), "holds no sequences"),
    ]:
        assert run(config) == 2
        line = capsys.readouterr().err
        assert line.count("\n") == 1 and words in line


@pytest.mark.parametrize("name", ["tokens.bin", "response.bin", "index.safetensors", "held_out.jsonl"])
def test_damaged_sequences_are_named_and_never_trained_on(made, name):
    place = made / name
    whole = place.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", None):
        if (name, damaged) == ("held_out.jsonl", b""):
            continue
        place.unlink() if damaged is None else place.write_bytes(damaged)
        with pytest.raises(ConfigError, match=r"sequences is damaged .*; remove it, and what made it makes it anew"):
            Sequences(made)


@pytest.fixture
def made(tmp_path, tiny) -> Path:
    place = write_rows(tmp_path / "given.jsonl", [{"prompt": "ab", "response": "cdef"}, HELD_OUT])
    build(checked(tmp_path, data={"path": str(place)}), tiny.tokenizer, None, tmp_path / "sequences", lambda: None)
    return tmp_path / "sequences"


@pytest.fixture
def thinker(tmp_path, tiny) -> Path:
    """A target whose template is that of a thinking model."""
    tokenizer = copy.deepcopy(tiny.tokenizer)
    tokenizer.chat_template = THINKER
    return random_target(tmp_path / "thinker", tokenizer)


@pytest.mark.parametrize("thinking", [True, False])
def test_a_chat_is_written_anew_turn_after_turn_by_a_server(tmp_path, server, thinker, thinking):
    """Each prompt that the server sees is what training shows before the answer."""
    ask, answer = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "old"}
    place = write_rows(tmp_path / "chats.jsonl", [{"messages": [ask, answer, {**ask, "content": "ho"}]}] * 2)
    data = {"server": server.url, "regenerate": "all", "thinking": thinking, "max_new_tokens": 5}
    assert run(settings(tmp_path / "run", place, data, target=str(thinker), num_draft_layers=1)) == 0
    # Two equal chats cost one.
    first, second = (bytes(body["prompt"]) for body in server.asked)
    empty = b"" if thinking else b"<think></think>"
    assert first == b"[user]hi[assistant]" + empty
    one = bytes(greedy(server.target, [list(first)], [5])[0].tokens)
    assert second == b"[user]hi[assistant]" + one + b"[user]ho[assistant]" + empty
    two = bytes(greedy(server.target, [list(second)], [5])[0].tokens)
    told = [
        (bytes(tokens), bytes(t for t, r in zip(tokens, marks, strict=True) if r))
        for tokens, marks in tokens_of(tmp_path / "run")
    ]
    if thinking:
        assert told == [(second + two, one + two)] * 2
    else:
        # The empty thought goes from the history: two sequences, each as a server sees it.
        assert told == [(first + one, one), (second + two, two)] * 2


def test_a_trained_run_can_check_itself_on_prepared_data(tmp_path, rows, capsys):
    assert run(settings(tmp_path / "made", rows)) == 0
    told = {"run_dir": str(tmp_path / "run"), "target": "tiny", "num_draft_layers": 2, "block_size": 4, "threads": 1}
    place = tmp_path / "config.json"
    place.write_text(json.dumps({**told, "data": {"path": str(tmp_path / "made" / "sequences")}}))
    assert selfcheck.main([str(place)]) == 0
    assert capsys.readouterr().out.count("ok  ") == 5


def test_an_empty_answer_is_counted_and_left_out(tmp_path, tiny, server, rows):
    server.answer = lambda body: {"choices": [{"text": "", "finish_reason": "stop"}]}
    assert run(settings(tmp_path / "run", rows, {"server": server.url})) == 0
    assert len(Sequences(tmp_path / "run" / "sequences")) == 0
    said = [r["reason"] for r in events(tmp_path / "run", "warn")]
    assert said == ["rows left out: 8 (response of fewer than two tokens)"]
    assert run(checked(tmp_path / "train", data={"path": str(tmp_path / "run" / "sequences")})) == 2

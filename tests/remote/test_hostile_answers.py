"""What a host says is believed only in the shape it must have; the rest is one sentence, printable."""

import json
from typing import Any

import pytest

from dflash_tui.errors import HostError
from dflash_tui.remote.client import AgentClient
from dflash_tui.remote.follow import LOG, Heard, sweep
from dflash_tui.remote.status import RunStatus, read_status
from dflash_tui.runs import RunState

STATUS: dict[str, Any] = {
    "run_id": "run-1",
    "state": "failed",
    "reason": "error",
    "code": 1,
    "signal": None,
    "attempt": 1,
    "pid": 7,
    "age_s": 1.5,
    "heartbeat_age_s": None,
    "note": None,
    "checkpoint": {"path": "/w/checkpoints/step-5", "step": 5, "age_s": 2.0},
}
CHUNK: dict[str, Any] = {
    "stream": LOG,
    "bytes": 4,
    "offset": 4,
    "inode": 9,
    "anchor": "00",
    "size": 4,
    "more": False,
    "reset": None,
}
REASONS = [
    "completed",
    "stopped",
    "killed-after-grace",
    "saved",
    "nan",
    "oom-gpu",
    "oom-host-likely",
    "disk-full",
    "environment",
    "error",
    "signal",
    "host-rebooted",
    "container-restarted",
    "killed",
]


def arrived(value: dict[str, Any]) -> dict[str, Any]:
    """As it comes from the wire: Infinity and lone surrogates are JSON that Python reads."""
    found: dict[str, Any] = json.loads(json.dumps(value))
    return found


@pytest.mark.parametrize("reason", [*REASONS, None])
def test_every_reason_of_the_closed_list_is_heard(reason: str | None) -> None:
    assert read_status(arrived({**STATUS, "reason": reason})).reason == reason


@pytest.mark.parametrize(
    "wrong",
    [
        {"pid": float("inf")},
        {"code": float("nan")},
        {"code": 2**31},
        {"attempt": -(2**40)},
        {"signal": "nine"},
        {"age_s": float("inf")},
        {"heartbeat_age_s": float("nan")},
        {"age_s": 10**400},
        {"state": "fine"},
        {"reason": "\x1b]0;title\x07"},
        {"reason": ["error"]},
        {"reason": ""},
        {"run_id": "../up"},
        {"run_id": "\ud800"},
        {"checkpoint": 0},
        {"checkpoint": []},
        {"checkpoint": {**STATUS["checkpoint"], "step": float("inf")}},
        {"checkpoint": {**STATUS["checkpoint"], "age_s": float("nan")}},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_status_of_another_shape_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(HostError, match="the agent gave a status that cannot be read") as refused:
        read_status(arrived({**STATUS, **wrong}))
    assert str(refused.value).isprintable()


def test_words_of_a_host_arrive_printable() -> None:
    found = read_status(arrived({**STATUS, "note": "é \ud800\x1b[2J\n" + "x" * 5000}))
    assert found.note is not None and found.note.startswith(r"é \ud800\x1b[2J\nxxx")
    assert len(found.note) < 2000
    checkpoint = {"path": "/w/\udcff", "step": 5, "age_s": 2.0}
    assert read_status(arrived({**STATUS, "checkpoint": checkpoint})).checkpoint.path == r"/w/\udcff"  # type: ignore[union-attr]


class Scripted:
    """An agent that gives the same answer to every operation."""

    def __init__(self, result: dict[str, Any], data: bytes) -> None:
        self.answer = (arrived(result), data)
        self.told: dict[str, RunStatus] = {}

    async def ask(self, ops: list[dict[str, Any]], *, timeout_s: float) -> list[tuple[dict[str, Any], bytes]]:
        return [self.answer for _ in ops]

    accepted = AgentClient.accepted

    @property
    def host(self) -> "Scripted":
        return self

    name = "far"


@pytest.mark.parametrize(
    "wrong",
    [
        {"bytes": float("inf")},
        {"bytes": -4},
        {"bytes": 5},
        {"offset": -1},
        {"inode": float("inf")},
        {"stream": "attempts/../../x"},
        {"stream": "attempts/1/output.log\n"},
        {"reset": "\x1b[2J"},
        {"reset": []},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
async def test_a_log_of_another_shape_is_refused(wrong: dict[str, Any]) -> None:
    agent = Scripted({"status": STATUS, "chunks": [{**CHUNK, **wrong}]}, b"one\n")
    heard = (await sweep(agent, {"run-1": {}}))["run-1"]  # type: ignore[arg-type]
    assert isinstance(heard, HostError)
    assert str(heard).startswith("the agent gave a log that cannot be read")
    assert str(heard).isprintable()


async def test_no_status_is_none_of_a_run_that_was_never_told() -> None:
    agent = Scripted({"status": None, "chunks": []}, b"")
    for told, kind in ((read_status(STATUS), Heard), (None, HostError)):
        agent.told = {"run-1": told} if told else {}
        heard = (await sweep(agent, {"run-1": {}}))["run-1"]  # type: ignore[arg-type]
        assert isinstance(heard, kind)
    agent = Scripted({"status": STATUS, "chunks": [{**CHUNK, "bytes": 5}]}, b"one\n")
    agent.told = {"run-1": read_status(STATUS)}
    assert isinstance((await sweep(agent, {"run-1": {}}))["run-1"], HostError)  # type: ignore[arg-type]
    assert not agent.told, "what could not be read is to be told again"


async def test_a_log_of_the_right_shape_and_a_refusal_in_any_words() -> None:
    heard = (await sweep(Scripted({"status": STATUS, "chunks": [CHUNK]}, b"one\n"), {"run-1": {}}))["run-1"]  # type: ignore[arg-type]
    assert not isinstance(heard, HostError)
    assert (heard.status.state, heard.chunks[0].data, heard.has_more) == (RunState.FAILED, b"one\n", False)
    refused = (await sweep(Scripted({"error": "no \x1b[2J\ud800"}, b""), {"run-1": {}}))["run-1"]  # type: ignore[arg-type]
    assert str(refused) == r"far: no \x1b[2J\ud800"

"""Sweeps: what is new of many runs comes in bounded answers, and nothing that is left counts as read."""

import fcntl
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dflash_tui.errors import HostError
from dflash_tui.remote.client import AgentClient
from dflash_tui.remote.follow import LOG, Heard, sweep
from dflash_tui.remote.launch import launch, status, stop
from dflash_tui.runs import Cursor, RunRecord

from .far_side import TOYS

Streams = dict[str, bytes]
LINE = b"x" * 99 + b"\n"
END = {"state": "failed", "reason": "error", "code": 1, "signal": None, "note": None, "said": "no", "started": 0.0}


class Copies:
    """What a collector keeps of runs, and whether it would call each one complete."""

    def __init__(self, agent: AgentClient, run_ids: list[str]) -> None:
        self.agent = agent
        self.streams: dict[str, Streams] = {run_id: {} for run_id in run_ids}
        self.cursors: dict[str, dict[str, Cursor]] = {run_id: {} for run_id in run_ids}
        self.resets: list[str] = []

    async def sweep(self, run_ids: list[str] | None = None) -> dict[str, Heard]:
        heard = await sweep(self.agent, {run_id: self.cursors[run_id] for run_id in run_ids or self.cursors})
        found = {run_id: what for run_id, what in heard.items() if isinstance(what, Heard)}
        assert len(found) == len(heard), heard
        for run_id, what in found.items():
            for chunk in what.chunks:
                self._keep(run_id, chunk.stream, chunk.data, chunk.cursor, chunk.reset)
        return found

    def _keep(self, run_id: str, stream: str, data: bytes, cursor: Cursor, reset: str | None) -> None:
        if reset:
            self.resets.append(reset)
            self.cursors[run_id].pop(stream, None)
        if data:
            self.streams[run_id][stream] = self.streams[run_id].get(stream, b"") + data
            self.cursors[run_id][stream] = cursor

    async def catch_up(self) -> None:
        """Ask for each run until nothing is left of it, and then never again."""
        left = list(self.cursors)
        for _ in range(50):
            left = [run_id for run_id, what in (await self.sweep(left)).items() if what.has_more]
            if not left:
                return
        pytest.fail(f"still more of {left}")


def folder_of(agent: AgentClient, run_id: str) -> Path:
    return Path(agent.workdir, "dflash-runs", run_id)


def make_run(agent: AgentClient, run_id: str, log: bytes, *outputs: bytes) -> Path:
    """A run whose newest attempt has neither state nor end yet."""
    folder = folder_of(agent, run_id)
    folder.mkdir(parents=True)
    (folder / LOG).write_bytes(log)
    for number, output in enumerate(outputs or (b"",), 1):
        (folder / f"attempts/{number}").mkdir(parents=True)
        (folder / f"attempts/{number}/output.log").write_bytes(output)
    return folder


def end(folder: Path) -> None:
    newest = max((folder / "attempts").iterdir(), key=lambda attempt: int(attempt.name))
    (newest / "exit.json").write_text(json.dumps(END))


@pytest.fixture
def supervise() -> Iterator[Callable[[Path], None]]:
    """Hold a run's lock, as its supervisor does for its whole life."""
    locks = []

    def hold(folder: Path) -> None:
        lock = (folder / "lock").open("wb")
        fcntl.flock(lock, fcntl.LOCK_EX)
        locks.append(lock)

    yield hold
    for lock in locks:
        lock.close()


@pytest.mark.parametrize("is_over", [True, False])
async def test_a_run_that_an_answer_had_no_room_for_has_more(
    agent: AgentClient, supervise: Callable[[Path], None], is_over: bool
) -> None:
    run_ids = [f"run-{n}" for n in range(20)]
    for run_id in run_ids:
        folder = make_run(agent, run_id, LINE * 3000 + b"torn")
        end(folder) if is_over else supervise(folder)
    copies = Copies(agent, run_ids)
    first = await copies.sweep()
    assert not first["run-19"].chunks[0].data and first["run-19"].has_more
    assert first["run-19"].status.state.is_over is is_over
    await copies.catch_up()
    expected = LINE * 3000 + (b"torn" if is_over else b"")
    assert [copies.streams[run_id][LOG] == expected for run_id in run_ids] == [True] * 20


async def test_a_torn_last_line_alone_is_no_more(agent: AgentClient, supervise: Callable[[Path], None]) -> None:
    folder = make_run(agent, "run-1", b"one\ntw", b"out\npu")
    supervise(folder)
    copies = Copies(agent, ["run-1"])
    for _ in range(2):
        assert not (await copies.sweep())["run-1"].has_more
    assert copies.streams["run-1"] == {LOG: b"one\n", "attempts/1/output.log": b"out\n"}
    end(folder)
    await copies.catch_up()
    assert copies.streams["run-1"] == {LOG: b"one\ntw", "attempts/1/output.log": b"out\npu"}


async def test_the_rest_of_a_rotated_log_is_not_all_there_is(agent: AgentClient) -> None:
    folder = make_run(agent, "run-1", b"one\n")
    end(folder)
    copies = Copies(agent, ["run-1"])
    await copies.catch_up()
    with (folder / LOG).open("ab") as f:
        f.write(b"two\n")
    (folder / LOG).rename(folder / f"{LOG}.1")
    (folder / LOG).write_bytes(b"three\n")
    await copies.catch_up()
    assert (copies.streams["run-1"][LOG], copies.resets) == (b"one\ntwo\nthree\n", ["rotated"])


async def test_the_output_of_every_attempt_is_read_to_its_end(agent: AgentClient) -> None:
    outputs = [LINE * 9000, b"second\n", b"", LINE * 6000, b"fifth"]
    end(make_run(agent, "run-1", b"one\n", *outputs))
    copies = Copies(agent, ["run-1"])
    await copies.catch_up()
    read = [copies.streams["run-1"].get(f"attempts/{n}/output.log", b"") for n in range(1, 6)]
    assert [len(data) for data in read] == [len(output) for output in outputs]
    assert read == outputs
    assert (await copies.sweep())["run-1"].chunks == []


HERE = {"boot_id": "none", "pid1_start": 1}
DAMAGED = [
    ("state.json", {}),
    ("state.json", {"child": 7, "started": 0.0}),
    ("state.json", {"child": [], "started": 0.0}),
    ("state.json", {"child": [1, 1], "started": "yesterday"}),
    ("state.json", {"child": [1, 1], "started": 0.0, "where": HERE, "log_bytes": []}),
    ("state.json", {"child": [1, 1], "started": 0.0, "where": HERE, "log_bytes": 1e400}),
    ("state.json", {"child": [1, 1], "started": 0.0, "where": []}),
    ("exit.json", {"state": "failed"}),
    ("exit.json", {**END, "started": None}),
]


@pytest.mark.parametrize(("name", "value"), DAMAGED)
async def test_a_damaged_file_is_the_trouble_of_its_run_alone(
    agent: AgentClient, name: str, value: dict[str, object]
) -> None:
    end(make_run(agent, "sound-1", b"one\n"))
    (make_run(agent, "bad-1", b"one\n") / "attempts/1" / name).write_text(json.dumps(value))
    wanted: dict[str, dict[str, Cursor]] = {"bad-1": {}, "sound-1": {}}
    heard = await sweep(agent, wanted)
    assert isinstance(heard["sound-1"], Heard) and heard["sound-1"].chunks[0].data == b"one\n"
    assert isinstance(heard["bad-1"], HostError)
    assert "run bad-1: a file of its newest attempt is damaged" in str(heard["bad-1"])
    assert [run["run_id"] for run in (await agent.do("list"))["runs"]] == ["sound-1"]
    with pytest.raises(HostError, match="is damaged"):
        await stop(agent, "bad-1", grace_s=0)
    with pytest.raises(HostError, match="is damaged"):
        await launch(agent, RunRecord("bad-1", "bad", "train"), {"steps": 1}, source=TOYS / "toy")
    assert (await status(agent, "sound-1")).reason == "error"

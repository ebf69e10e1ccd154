"""A person's script on every host: its words, its bytes, its end, and that nothing of it stays when its asker goes."""

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dflash_tui.config import HostSpec
from dflash_tui.errors import HostError, LinkLostError, TimedOutError, UsageError
from dflash_tui.hosts import open_host
from dflash_tui.remote import execute as remote
from dflash_tui.remote.client import AgentClient, agent_on
from dflash_tui.remote.execute import Ended, Order, Streams
from dflash_tui.remote.scripts import Script, checked, push

from ..pvehost.sshd import SshServer
from ..remote.far_side import assert_nobody_lives_below, processes_below, until
from .conftest import FOLDER, SPECS, Reach, working_in
from .test_every_host import NAMES, WORDS

CASES = Path(__file__).parents[1] / "data" / "cases"
ECHO = b"import os, sys; sys.stdout.buffer.write(b'\\0'.join(os.fsencode(word) for word in sys.argv[1:]))\n"


@dataclass
class Far:
    """A workdir on a host, with an agent there."""

    agent: AgentClient
    here: Path
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)

    async def run(
        self, script: Script, *args: str, stdin: Sequence[bytes] | None = None, timeout_s: float | None = None
    ) -> Ended:
        """`out` and `err` hold what it has said so far."""
        self.out.clear()
        self.err.clear()
        pieces = iter([*(stdin or ()), b""])

        async def read() -> bytes:
            return next(pieces)

        async def keep(data: bytes) -> None:
            self.out.extend(data)

        async def keep_error(data: bytes) -> None:
            self.err.extend(data)

        path = await push(self.agent, script)
        order = Order(script.argv(path, args, self.agent.python), self.agent.workdir, {}, self.agent.python)
        streams = Streams(None if stdin is None else read, keep, keep_error)
        return await remote.execute(self.agent.host, self.agent.command, order, streams, timeout_s=timeout_s)


@pytest.fixture
async def far(reach: Reach) -> AsyncIterator[Far]:
    spec = working_in(SPECS[reach.kind], f"{reach.far}/{FOLDER}")
    async with AgentClient.open(reach.host, spec) as agent:
        yield Far(agent, reach.here / FOLDER)
    assert_nobody_lives_below(Path(reach.far))


async def test_nasty_arguments_reach_a_script_byte_for_byte(far: Far) -> None:
    """case61: in a folder with a blank and a δ in its name, and no file comes of it."""
    expected = json.loads((CASES / "case61_nasty_args.expected.json").read_text())
    words = json.loads((CASES / "case61_nasty_args.json").read_text())
    ended = await far.run(Script("it's $HOME.py", ECHO), *words)
    assert far.out == "\0".join(expected["argv_seen_by_trainer"]).encode(), far.err
    assert hashlib.sha256(far.out).hexdigest() == expected["sha256"]
    assert ended == Ended(0, None, 0)
    assert sorted(path.name for path in far.here.iterdir()) == ["dflash-agent", "dflash-scripts"]


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(["", "-n", "a\nb", "--", "\\'", "%s"], "-x.py", b"\xff\0\n")
@given(st.lists(WORDS, max_size=4), NAMES, st.binary(max_size=3000))
async def test_any_words_any_name_and_any_stdin_arrive(far: Far, words: list[str], name: str, stdin: bytes) -> None:
    text = b"#!/usr/bin/env python3\n" + ECHO + b"sys.stdout.flush(); sys.stderr.buffer.write(sys.stdin.buffer.read())"
    ended = await far.run(Script(name, text), *words, stdin=[stdin] if stdin else [])
    assert far.out == b"\0".join(map(os.fsencode, words))
    assert (far.err, ended) == (stdin, Ended(0, None, 0))


async def test_long_output_and_long_input_are_whole(far: Far) -> None:
    """case69; and 8 MB of stdin through a window of one."""
    expected = json.loads((CASES / "case69_long_output.expected.json").read_text())
    await far.run(Script("long.py", (CASES / "case69_long_output.py").read_bytes()))
    assert (len(far.out), far.out.count(b"\n")) == (expected["bytes"], expected["lines"])
    assert hashlib.sha256(far.out).hexdigest() == expected["sha256_of_all"]
    text = b"import sys, hashlib; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())"
    pieces = [os.urandom(1_300_000) for _ in range(6)]
    await far.run(Script("sum.py", text), stdin=pieces)
    assert far.out.decode().strip() == hashlib.sha256(b"".join(pieces)).hexdigest()


async def test_half_a_line_comes_when_it_is_said_and_nothing_is_lost(far: Far) -> None:
    """case69 slow, case77: nobody has to flush."""
    text = b"print('half-', end='')\nimport time; time.sleep(0.4)\nprint('line'); print('done')\n"
    running = asyncio.create_task(far.run(Script("slow.py", text)))
    await until(lambda: far.out == b"half-", "half a line")
    await running
    assert far.out.decode().splitlines() == ["half-line", "done"]


@pytest.mark.parametrize(("line", "ended"), [("exit 3", Ended(3, None, 0)), ("kill -9 $$", Ended(None, 9, 0))])
async def test_the_end_is_the_scripts_own_also_through_pct(far: Far, line: str, ended: Ended) -> None:
    assert await far.run(Script("end.sh", line.encode())) == ended


async def test_a_child_that_keeps_the_output_keeps_nobody_waiting(far: Far) -> None:
    ended = await far.run(Script("child.sh", b"sleep 1000 &\necho $!; echo said"))
    assert far.out.decode().split()[1] == "said"
    assert ended == Ended(0, None, 1)
    await far.run(Script("kill.sh", b'kill -9 "$1"'), far.out.decode().split()[0])


async def test_what_reads_no_stdin_is_no_error(far: Far) -> None:
    assert await far.run(Script("deaf.sh", b"exec <&-; exit 0"), stdin=[b"x" * 1_000_000] * 4) == Ended(0, None, 0)
    # The window of stdin is full when it ends, without having closed it.
    assert await far.run(Script("deaf.sh", b"exit 4"), stdin=[b"x" * 1_000_000] * 4) == Ended(4, None, 0)


async def test_the_hosts_interpreter_runs_it_and_comes_first_on_its_path(far: Far) -> None:
    """case62: nothing is sourced, and nothing has to be."""
    text = b"import os, sys; print(sys.executable, os.environ['PATH'].split(':')[0], os.getcwd(), os.environ['HOME'])"
    await far.run(Script("which.py", text))
    executable, first, cwd = far.out.decode().replace(FOLDER, "F").split()[:3]
    assert (executable, first, cwd) == (
        sys.executable,
        str(Path(sys.executable).parent),
        str(far.agent.workdir[: -len(FOLDER)] + "F"),
    )


async def test_who_stops_waiting_leaves_nothing_there(far: Far) -> None:
    """Ctrl-C: children too, one that ignores it and one in a session of its own."""
    stubborn = "import signal, time; signal.signal(2, signal.SIG_IGN); print('up', flush=True); time.sleep(1000)"
    text = f"""
import subprocess, sys, time
for own in (False, True):
    subprocess.Popen([sys.executable, "-c", {stubborn!r}], start_new_session=own)
try:
    time.sleep(1000)
except KeyboardInterrupt:
    print("caught")
"""
    name = f"family-{os.urandom(4).hex()}.py"
    running = asyncio.create_task(far.run(Script(name, text.encode())))
    await until(lambda: far.out.count(b"up") == 2, "all are up")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert b"caught" in far.out
    assert len([pid for pid in processes_below(Path("/")) if is_of(pid, name)]) == 0


def is_of(pid: int, name: str) -> bool:
    try:
        return name.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


async def test_what_takes_too_long_is_ended(far: Far) -> None:
    with pytest.raises(TimedOutError, match=r"took longer than 0\.5 s and was ended"):
        await far.run(Script("long.sh", b"exec sleep 1000"), timeout_s=0.5)


async def test_what_cannot_run_says_why(far: Far) -> None:
    with pytest.raises(HostError, match="cannot start /no/such/interpreter: No such file or directory"):
        await far.run(Script("odd", b"#!/no/such/interpreter\n"))
    for name, content in (("noname", b"print(1)\n"), ("empty.py", b"")):
        with pytest.raises(UsageError, match=name):
            checked(Script(name, content), name)


async def test_a_script_is_pushed_once_and_anew_when_it_was_changed(far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script("once.sh", b"echo 1")
    path = far.here / "dflash-scripts" / script.sha256 / "once.sh"
    for _ in range(2):
        await far.run(script)
        assert far.out == b"1\n"
        assert path.stat().st_mode & 0o777 == 0o600
        before = path.stat().st_ino
    await far.run(script)
    assert path.stat().st_ino == before
    path.write_bytes(b"echo 2")
    await far.run(script)
    assert far.out == b"1\n"
    path.chmod(0o664)
    await far.run(script)
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_lost_link_ends_it_and_says_so(box: SshServer, tmp_path: Path) -> None:
    spec = working_in(SPECS["ssh"], str(tmp_path / "far"))
    async with agent_on(spec) as agent:
        far = Far(agent, tmp_path / "far")
        running = asyncio.create_task(far.run(Script("wait.sh", b"echo up; exec sleep 1000")))
        await until(lambda: far.out == b"up\n", "it is up")
        box.end_sessions()
        with pytest.raises(LinkLostError, match="the link to box was lost: what ran there is ended"):
            await running
    await until(lambda: not processes_below(tmp_path / "far"), "all are gone", 15)


async def test_a_silent_asker_counts_as_gone(tmp_path: Path) -> None:
    """A link that is cut gives no end of file."""
    spec = HostSpec(kind="local", name="local", python=sys.executable, workdir=str(tmp_path / "far"))
    async with AgentClient.open(open_host(spec), spec) as agent:
        channel = await agent.host.start([*agent.command, "execute", "0.5"])
        order = json.dumps({"argv": ["sleep", "1000"], "cwd": agent.workdir, "env": {"X": str(tmp_path / "far")}})
        await channel.write(remote._HEAD.pack(b"R", len(order)) + order.encode())
        await until(lambda: len(processes_below(tmp_path / "far")) == 3, "it runs")
        assert (await channel.wait()).code == 0
        await until(lambda: len(processes_below(tmp_path / "far")) == 1, "it is ended")
        await channel.close()

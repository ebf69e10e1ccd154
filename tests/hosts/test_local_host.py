"""A local process through the Host protocol: every byte of argv, stdin and output, and how it ended."""

import asyncio
import hashlib
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_tui.config import HostSpec
from dflash_tui.errors import HostError, TimedOutError
from dflash_tui.hosts import open_host
from dflash_tui.hosts.base import Completed, Host

CASES = Path(__file__).parents[1] / "data" / "cases"
ECHO_ARGV = "import json, sys; print(json.dumps(sys.argv[1:]))"
WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)


def local() -> Host:
    return open_host(HostSpec(kind="local", name="local"))


async def run_python(program: str, *args: str, stdin: bytes = b"", timeout_s: float = 30) -> Completed:
    return await local().run([sys.executable, "-I", "-S", "-c", program, *args], stdin=stdin, timeout_s=timeout_s)


async def test_nasty_arguments_arrive_byte_for_byte() -> None:
    given_args = json.loads((CASES / "case61_nasty_args.json").read_text())
    expected = json.loads((CASES / "case61_nasty_args.expected.json").read_text())
    done = await run_python(ECHO_ARGV, *given_args)
    seen = json.loads(done.stdout)
    assert seen == expected["argv_seen_by_trainer"]
    assert hashlib.sha256("\0".join(seen).encode()).hexdigest() == expected["sha256"]


@settings(max_examples=25, deadline=None)
@given(st.lists(WORDS, max_size=5), st.binary(max_size=4000))
def test_any_argument_and_any_stdin_arrive(words: list[str], stdin: bytes) -> None:
    program = "import hashlib, json, sys; d = sys.stdin.buffer.read(); print(json.dumps([sys.argv[1:], d.hex()]))"
    done = asyncio.run(run_python(program, *words, stdin=stdin))
    assert json.loads(done.stdout) == [words, stdin.hex()]


async def test_long_output_arrives_whole() -> None:
    expected = json.loads((CASES / "case69_long_output.expected.json").read_text())
    done = await local().run([sys.executable, str(CASES / "case69_long_output.py")])
    assert len(done.stdout) == expected["bytes"]
    assert hashlib.sha256(done.stdout).hexdigest() == expected["sha256_of_all"]
    assert done.stdout.splitlines()[-1].decode() == expected["last_line"]


async def test_both_outputs_may_be_larger_than_any_pipe() -> None:
    program = "import sys\nfor i in range(40): sys.stderr.write('e' * 30000); sys.stdout.write('o' * 30000)"
    done = await run_python(program)
    assert (len(done.stdout), len(done.stderr)) == (1_200_000, 1_200_000)


async def test_how_a_program_ends() -> None:
    assert (await run_python("raise SystemExit(7)")).code == 7
    killed = await run_python("import os; os.kill(os.getpid(), 9)")
    assert (killed.code, killed.signal) == (None, 9)


async def test_a_program_that_reads_no_stdin_is_no_error() -> None:
    done = await run_python("import os; os.close(0)", stdin=b"x" * 1_000_000)
    assert done.code == 0


async def test_a_slow_program_is_killed_with_its_children(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys, pathlib, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "pathlib.Path(sys.argv[1]).write_text(str(child.pid)); time.sleep(600)"
    )
    with pytest.raises(TimedOutError, match=r"python.* on local took longer than 3 s"):
        await run_python(program, str(tmp_path / "pid"), timeout_s=3)
    child = Path("/proc", (tmp_path / "pid").read_text())
    async with asyncio.timeout(30):
        while child.exists() and (child / "cmdline").read_bytes():  # noqa: ASYNC110 - a stranger's death is no event
            await asyncio.sleep(0.01)


async def test_a_detached_grandchild_that_keeps_the_pipes_does_not_hold_a_closed_channel(tmp_path: Path) -> None:
    program = "import subprocess, sys; p = subprocess.Popen(['sleep', '60'], start_new_session=True); print(p.pid)"
    channel = await local().start([sys.executable, "-I", "-S", "-c", program])
    sleeper = int(await channel.read(100))
    try:
        assert (await channel.wait()).code == 0
        await asyncio.wait_for(channel.close(), 2)
    finally:
        os.kill(sleeper, signal.SIGKILL)


async def test_a_missing_program_is_one_sentence() -> None:
    with pytest.raises(HostError, match="cannot start /no/such/python on local: No such file or directory"):
        await local().run(["/no/such/python"])


async def test_put_is_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "my runs δ 1 'x'.bin"
    target.write_bytes(b"old")
    await local().put(b"new\0bytes\xff", str(target), mode=0o640)
    assert target.read_bytes() == b"new\0bytes\xff"
    assert target.stat().st_mode & 0o777 == 0o640
    with pytest.raises(HostError, match=r"cannot write .*nowhere/x on local: No such file or directory"):
        await local().put(b"x", str(tmp_path / "nowhere" / "x"))
    assert [p.name for p in tmp_path.iterdir()] == [target.name]


async def test_who_gives_up_the_wait_for_the_end_of_stdin_leaves_no_traceback() -> None:
    told: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
    channel = await local().start(["sleep", "60"])
    for wait in (channel.write(bytes(1 << 20)), channel.write_eof()):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(wait, 0.02)
    await channel.close()
    await asyncio.sleep(0.02)
    assert told == []

"""What holds for every host, the same test over each: bytes of argv, stdin, output and files, how a program ends."""

import asyncio
import hashlib
import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dflash_tui.errors import HostError, TimedOutError
from dflash_tui.hosts.base import Completed, Host

from .conftest import Reach

CASES = Path(__file__).parents[1] / "data" / "cases"
ECHO = "import os, sys; sys.stdout.buffer.write(b'\\0'.join(os.fsencode(word) for word in sys.argv[1:]))"
# What Linux allows in a word and in a name. os.fsdecode makes the text that Python has for bytes that are none.
WORDS = st.one_of(
    st.text(st.sampled_from("a'\"\\$`!%*~ \n\t#&;|<>()[]{}=-^?é日\x7f"), max_size=12),
    st.binary(max_size=40).map(lambda raw: os.fsdecode(raw.replace(b"\0", b""))),
)
NAMES = WORDS.map(lambda word: word.replace("/", "")[:100]).filter(lambda word: word not in ("", ".", ".."))
reaching = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


async def run_python(host: Host, text: str, *args: str, stdin: bytes = b"", timeout_s: float = 30) -> Completed:
    return await host.run([sys.executable, "-I", "-S", "-c", text, *args], stdin=stdin, timeout_s=timeout_s)


async def test_nasty_arguments_arrive_byte_for_byte(reach: Reach) -> None:
    """case61."""
    given_args = json.loads((CASES / "case61_nasty_args.json").read_text())
    expected = json.loads((CASES / "case61_nasty_args.expected.json").read_text())
    done = await run_python(reach.host, ECHO, *given_args)
    assert done.stdout == "\0".join(expected["argv_seen_by_trainer"]).encode()
    assert hashlib.sha256(done.stdout).hexdigest() == expected["sha256"]


@reaching
@example(["a\\", "\\'", "!!", "=ls", "%self", "^a^b", "\n", "", "-n", "\\0101", "\\c", "--"], b"\xff\0\n")
@given(st.lists(WORDS, min_size=1, max_size=5), st.binary(max_size=4000))
async def test_any_argument_and_any_stdin_arrive(reach: Reach, words: list[str], stdin: bytes) -> None:
    text = f"{ECHO}; sys.stdout.flush(); sys.stderr.buffer.write(sys.stdin.buffer.read())"
    done = await run_python(reach.host, text, *words, stdin=stdin)
    assert done.stdout == b"\0".join(os.fsencode(word) for word in words)
    assert (done.stderr, done.code) == (stdin, 0)


@reaching
@example("-rf", b"")
@example("two words", b"\xff\0\n")
@given(NAMES, st.binary(max_size=4000))
async def test_any_file_arrives_under_any_name(reach: Reach, name: str, data: bytes) -> None:
    await reach.host.put(data, f"{reach.far}/{name}")
    [found] = os.listdir(os.fsencode(reach.here))  # noqa: PTH208 - names are bytes
    assert found == os.fsencode(name)
    path = reach.here / name
    assert path.read_bytes() == data
    path.unlink()


async def test_a_file_is_whole_or_not_there(reach: Reach) -> None:
    (reach.here / "my runs").mkdir()
    target = reach.here / "my runs/δ 1 'x'.bin"
    target.write_bytes(b"old")
    data = os.urandom(3_000_000)
    await reach.host.put(data, f"{reach.far}/my runs/{target.name}", mode=0o640)
    assert target.read_bytes() == data
    assert target.stat().st_mode & 0o777 == 0o640
    with pytest.raises(HostError, match=rf"cannot write .*nowhere/x on {reach.host.name}: .*(No such|nonexistent)"):
        await reach.host.put(b"x", f"{reach.far}/nowhere/x")
    with pytest.raises(HostError, match=rf"cannot write .*my runs on {reach.host.name}: Is a directory"):
        await reach.host.put(b"x", f"{reach.far}/my runs")
    assert [path.name for path in target.parent.iterdir()] == [target.name]


async def test_long_output_arrives_whole(reach: Reach) -> None:
    """case69."""
    expected = json.loads((CASES / "case69_long_output.expected.json").read_text())
    await reach.host.put((CASES / "case69_long_output.py").read_bytes(), f"{reach.far}/long.py")
    done = await reach.host.run([sys.executable, f"{reach.far}/long.py"])
    assert len(done.stdout) == expected["bytes"]
    assert hashlib.sha256(done.stdout).hexdigest() == expected["sha256_of_all"]


async def test_both_outputs_may_be_larger_than_any_buffer(reach: Reach) -> None:
    text = "import sys\nfor i in range(200): sys.stderr.write('e' * 30000); sys.stdout.write('o' * 30000)"
    done = await run_python(reach.host, text)
    assert (len(done.stdout), len(done.stderr)) == (6_000_000, 6_000_000)


async def test_a_slow_reader_loses_nothing(reach: Reach) -> None:
    channel = await reach.host.start([sys.executable, "-c", "print('x' * 8_000_000)"])
    await asyncio.sleep(0.2)
    size = 0
    while piece := await channel.read(100_000):
        assert len(piece) <= 100_000
        size += len(piece)
    assert (size, (await channel.wait()).code) == (8_000_001, 0)
    await channel.close()


async def test_half_a_line_comes_when_it_is_said(reach: Reach) -> None:
    text = "import sys; print('half-', end='', flush=True); print(sys.stdin.readline(), end='')"
    channel = await reach.host.start([sys.executable, "-c", text])
    assert await channel.read(100) == b"half-"
    await channel.write(b"line\n")
    assert await channel.read(100) == b"line\n"
    await channel.write_eof()
    assert (await channel.read(100), (await channel.wait()).code) == (b"", 0)
    await channel.close()


@pytest.mark.parametrize("code", [0, 3, 127, 255])
async def test_an_exit_code_is_the_programs_own(reach: Reach, code: int) -> None:
    assert (await run_python(reach.host, f"raise SystemExit({code})")).code == code


async def test_a_signal_is_told(reach: Reach) -> None:
    done = await run_python(reach.host, "import os; os.kill(os.getpid(), 9)")
    # pct knows codes alone: 128 + the signal.
    assert (done.code, done.signal) == ((137, None) if reach.kind == "proxmox" else (None, 9))


async def test_a_missing_program_is_named(reach: Reach) -> None:
    try:
        done = await reach.host.run(["/no/such/python"])
    except HostError as e:
        assert "cannot start /no/such/python on local" in str(e)
    else:
        assert done.code == 127 and b"/no/such/python" in done.stderr


async def test_a_program_that_reads_no_stdin_is_no_error(reach: Reach) -> None:
    done = await run_python(reach.host, "import os; os.close(0)", stdin=b"x" * 5_000_000)
    assert done.code == 0


async def test_a_slow_program_is_a_timeout_and_the_host_goes_on(reach: Reach) -> None:
    with pytest.raises(TimedOutError, match=rf"sleep on {reach.host.name} took longer than 0\.3 s"):
        await reach.host.run(["sleep", "5"], timeout_s=0.3)
    assert (await reach.host.run(["echo", "on"])).stdout == b"on\n"


async def test_a_nul_in_an_argument_is_refused(reach: Reach) -> None:
    with pytest.raises(HostError, match="an argument of echo holds a NUL character"):
        await reach.host.run(["echo", "a\0b"])


async def test_there_is_no_terminal_and_stdin_ends(reach: Reach) -> None:
    text = "import os, sys; print([os.isatty(fd) for fd in (0, 1, 2)], repr(sys.stdin.read()))"
    assert (await run_python(reach.host, text)).stdout == b"[False, False, False] ''\n"

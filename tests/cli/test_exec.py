"""`exec`: a script's own streams and exit code, as if it ran here."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import dflash, on_terminal, refused


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "it's mine.py"
    file.write_text(
        "import sys\nprint(sys.argv[1:])\nsys.stderr.write(sys.stdin.read())\nsys.exit(5 if sys.argv[1:] else 0)\n"
    )
    return file


def test_words_behind_the_file_are_the_scripts_and_its_code_is_ours(script: Path) -> None:
    said = dflash("exec", "local", str(script), "--help", "--timeout", "1", "--", "", "-n", stdin="in\n")
    assert (said.code, said.out, said.err) == (5, "['--help', '--timeout', '1', '--', '', '-n']\n", "in\n")
    said = dflash("exec", "-n", "local", str(script), stdin="in\n")
    assert (said.code, said.out, said.err) == (0, "[]\n", "")


def test_a_script_on_stdin_and_a_signal_as_a_shell_tells_it() -> None:
    said = dflash("exec", "local", "-", "a b", stdin='#!/bin/sh\necho "$1"; read x || echo none; kill -15 $$\n')
    assert (said.code, said.out) == (143, "a b\nnone\n"), said.err


def test_ctrl_c_ends_it_there(tmp_path: Path) -> None:
    file = tmp_path / "long.sh"
    file.write_text(f"trap 'echo caught; exit 1' INT\necho $$\nsleep 1000 &\nwait\n: {tmp_path}\n")
    argv = [sys.executable, "-m", "dflash_tui", "exec", "local", str(file)]
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stderr
    far = int(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    assert process.stdout.read() == "caught\n"
    assert (process.wait(20), process.stderr.read()) == (130, "")
    with pytest.raises(ProcessLookupError):
        os.kill(far, 0)


def test_a_reader_that_left_ends_it_without_a_word(tmp_path: Path) -> None:
    file = tmp_path / "endless.sh"
    file.write_text("while :; do echo y; done\n")
    argv = [sys.executable, "-m", "dflash_tui", "exec", "local", str(file)]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout and process.stderr
    process.stdout.readline()
    process.stdout.close()
    assert (process.wait(20), process.stderr.read()) == (0, b"")


def test_an_open_pipe_that_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    try:
        file = tmp_path / "quick.sh"
        file.write_text("echo done\n")
        argv = [sys.executable, "-m", "dflash_tui", "exec", "local", str(file)]
        done = subprocess.run(argv, stdin=read_end, capture_output=True, timeout=30)
        assert (done.stdout, done.returncode) == (b"done\n", 0)
    finally:
        os.close(read_end)
        os.close(write_end)


def test_what_is_typed_at_a_terminal_is_not_the_scripts(script: Path) -> None:
    assert on_terminal("exec", "local", str(script)).out == "[]\n"


def test_refusals(script: Path, tmp_path: Path) -> None:
    assert "no host named 'nowhere'" in refused(dflash("exec", "nowhere", str(script)), 2)
    assert "cannot be read: No such file" in refused(dflash("exec", "local", str(tmp_path / "none.py")), 2)
    assert "longer than 0.5 s" in refused(
        dflash("exec", "--timeout", "0.5", "local", "-", stdin="#!/bin/sh\nsleep 99"), 4
    )

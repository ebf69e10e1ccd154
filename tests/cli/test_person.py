"""The person at the terminal: a question is shown there, an answer is read there, a passphrase is not shown."""

import os
import pty
import select
import subprocess
import sys
import time

PROGRAM = """
import asyncio, fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from dflash_tui.commands.person import TerminalPerson, is_there
from dflash_tui.hosts.person import HostKey
async def main():
    person = TerminalPerson()
    print(is_there(), flush=True)
    key = HostKey("root@gpu\\x1b[2J", "ssh-ed25519", "SHA256:abc")
    both = await asyncio.gather(person.trusts(key), person.trusts(key))
    print(both, repr(await person.passphrase("/keys/a", is_repeated=True)), flush=True)
    await person.passphrase("/keys/b", is_repeated=False)
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("left", bool(termios.tcgetattr(0)[3] & termios.ECHO), flush=True)
"""


def until(terminal: int, words: str) -> str:
    seen, end = b"", time.monotonic() + 60
    while words.encode() not in seen:
        assert time.monotonic() < end, seen
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 4096)
    return seen.decode()


def test_questions_and_answers_at_a_terminal() -> None:
    terminal, other = pty.openpty()
    argv = [sys.executable, "-c", PROGRAM]
    process = subprocess.Popen(argv, stdin=other, stdout=other, stderr=other, start_new_session=True)
    os.close(other)
    try:
        seen = until(terminal, "Type yes or no: ")
        assert "True" in seen and "ssh-ed25519 SHA256:abc" in seen
        assert "\x1b" not in seen and "root@gpu\\x1b[2J" in seen
        assert seen.count("Type yes or no") == 1, "one question at a time"
        os.write(terminal, b"yes\n")
        until(terminal, "Type yes or no: ")
        os.write(terminal, b"y\n")
        assert "That does not open it. Passphrase of /keys/a" in until(terminal, "go on without it): ")
        os.write(terminal, "gehéim 1\n".encode())
        seen = until(terminal, "go on without it): ")
        assert "[True, False] 'gehéim 1'" in seen and seen.count("gehéim") == 1, "told by the program, not echoed"
        os.write(terminal, b"\x03")
        until(terminal, "left True")
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
        os.close(terminal)

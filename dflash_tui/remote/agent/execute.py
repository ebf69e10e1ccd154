"""One program run for somebody who waits for it: stdin in, both outputs out, and how it ended behind their last byte.

Both directions are frames: a kind of one letter, a length, that many bytes. In: `R` what to run (JSON), `I` and `E` its
stdin and the end of that, `K` end it (JSON), `P` the asker lives. Out: `O` and `E` its stdout and stderr, `A` how many
bytes of stdin it took, `X` how it ended (JSON), `F` why it did not start (a sentence).

Nothing of it outlives the asker: when the link ends, or is silent for `idle_s`, all that belongs to it is ended.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import select
import signal
import struct
import subprocess
import termios
import time
from typing import Any, Dict, List, Optional, Tuple

from . import proc
from .environment import environment
from .errors import DAMAGE, sentence
from .proc import adopt_strays, wake_on_signals

HEAD = struct.Struct(">cI")
MARK = "DFLASH_EXEC"
# What waits here for a slow link; the program stands still meanwhile.
_BUFFER_BYTES = 1 << 20
_READ_BYTES = 1 << 18
# For an asker who has gone without a word.
_GRACE_S = 5.0
_LEFTOVER_GRACE_S = 2.0


def execute(idle_s: float) -> None:
    """Answer the one order that comes on stdin."""
    link = _Link(idle_s)
    order = link.order()
    if order is None:
        return
    try:
        _Execution(link, order).run()
    except OSError as e:
        link.send(b"F", ("cannot start %s: %s" % (order["argv"][0], sentence(e))).encode("utf-8", "replace"))
    except DAMAGE as e:
        link.send(b"F", ("an order that is none (%s: %s)" % (type(e).__name__, e)).encode("utf-8", "replace"))
    link.flush(to_the_end=True)


class _Link:
    """Frames with the asker. `is_gone` when it has closed, or was silent for too long."""

    def __init__(self, idle_s: float) -> None:
        self.is_gone = False
        self.idle_s = idle_s
        self._heard = time.monotonic()
        self._in = bytearray()
        self._frames: List[Tuple[bytes, bytes]] = []
        self._out = bytearray()
        os.set_blocking(1, False)

    @property
    def has_room(self) -> bool:
        return len(self._out) < _BUFFER_BYTES

    @property
    def is_pending(self) -> bool:
        return bool(self._out)

    def order(self) -> Optional[Dict[str, Any]]:
        while not self._frames and not self.is_gone:
            select.select([0], [], [], self.idle_s)
            self._frames = self.receive()
        return dict(json.loads(self._frames.pop(0)[1])) if self._frames else None

    def receive(self) -> List[Tuple[bytes, bytes]]:
        """The frames that have come; call it when there may be some."""
        if select.select([0], [], [], 0)[0]:
            data = os.read(0, _READ_BYTES)
            self.is_gone = self.is_gone or not data
            self._in += data
            self._heard = time.monotonic()
        elif time.monotonic() - self._heard > self.idle_s:
            self.is_gone = True
        frames, self._frames = self._frames, []
        while len(self._in) >= HEAD.size:
            kind, size = HEAD.unpack_from(self._in)
            if len(self._in) < HEAD.size + size:
                break
            frames.append((kind, bytes(self._in[HEAD.size : HEAD.size + size])))
            del self._in[: HEAD.size + size]
        return frames

    def send(self, kind: bytes, data: bytes) -> None:
        self._out += HEAD.pack(kind, len(data)) + data

    def flush(self, to_the_end: bool = False) -> None:
        while self._out and not self.is_gone:
            try:
                sent = os.write(1, self._out)
            except BlockingIOError:
                if not to_the_end:
                    return
                select.select([], [1], [], self.idle_s)
                continue
            except OSError:
                self.is_gone = True
                break
            del self._out[:sent]
        if self.is_gone:
            self._out.clear()


class _Execution:
    """A program that was started, from its first byte to its last."""

    def __init__(self, link: _Link, order: Dict[str, Any]) -> None:
        self._link = link
        token = secrets.token_hex(16)
        self._mark = ("%s=%s" % (MARK, token)).encode()
        self._wake = wake_on_signals()
        adopt_strays()
        self._child = subprocess.Popen(
            order["argv"],
            cwd=order["cwd"],
            env=environment(order.get("python"), order.get("env", {}), {MARK: token}),
            stdin=subprocess.PIPE if order.get("stdin") else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
        )
        assert self._child.stdout and self._child.stderr
        self._leader = proc.find(self._child.pid)
        self._outputs = {self._child.stdout.fileno(): b"O", self._child.stderr.fileno(): b"E"}
        # Of each output, what is still to be carried once the program has ended: what its children say later is not.
        self._left: Optional[Dict[int, int]] = None
        self._stdin = self._child.stdin.fileno() if self._child.stdin else None
        self._in = bytearray()
        self._has_stdin_ended = False
        self._is_ending = False
        self._kill_at: Optional[float] = None
        self._code: Optional[int] = None
        for fd in (*self._outputs, *([] if self._stdin is None else [self._stdin])):
            os.set_blocking(fd, False)

    def run(self) -> None:
        while not self._is_over():
            reads = [self._wake] + ([] if self._link.is_gone else [0])
            reads += list(self._outputs) if self._link.has_room else []
            writes = [1] if self._link.is_pending else []
            writes += [self._stdin] if self._stdin is not None and self._in else []
            select.select(reads, writes, [], 0.2 if self._is_ending else 1.0)
            _drain(self._wake)
            for kind, data in self._link.receive():
                self._obey(kind, data)
            if self._link.is_gone and not self._is_ending:
                self._end(signal.SIGTERM, _GRACE_S)
            self._feed()
            self._look_after_child()
            self._carry()
            self._link.flush()
        code = self._code or 0
        left = 0 if self._is_ending else len(self._members())
        end = {"code": code if code >= 0 else None, "signal": -code if code < 0 else None, "left": left}
        self._link.send(b"X", json.dumps(end).encode())

    def _obey(self, kind: bytes, data: bytes) -> None:
        if kind == b"I":
            self._in += data
        elif kind == b"E":
            self._has_stdin_ended = True
        elif kind == b"K":
            order = json.loads(data)
            self._end(int(order["signal"]), float(order["grace_s"]))

    def _end(self, number: int, grace_s: float) -> None:
        """Ask the program's group to end; after the grace, kill what belongs to it. A second time can shorten that."""
        kill_at = time.monotonic() + grace_s
        self._kill_at = kill_at if self._kill_at is None else min(kill_at, self._kill_at)
        self._is_ending = True
        if self._code is None:
            os.killpg(self._child.pid, number)

    def _feed(self) -> None:
        """Hand on stdin. A program that has closed its own is no error: the rest is thrown away."""
        taken = 0
        while self._in:
            try:
                taken = len(self._in) if self._stdin is None else os.write(self._stdin, self._in)
            except BlockingIOError:
                break
            except OSError:
                taken = len(self._in)
                self._close_stdin()
            del self._in[:taken]
            self._link.send(b"A", struct.pack(">I", taken))
        if self._has_stdin_ended and not self._in:
            self._close_stdin()

    def _close_stdin(self) -> None:
        if self._child.stdin and self._stdin is not None:
            self._stdin = None
            self._child.stdin.close()

    def _carry(self) -> None:
        for fd, kind in list(self._outputs.items()):
            while self._link.has_room and (self._left is None or self._left[fd]):
                try:
                    data = os.read(fd, _READ_BYTES if self._left is None else min(_READ_BYTES, self._left[fd]))
                except BlockingIOError:
                    break
                if not data:
                    del self._outputs[fd]
                    break
                if self._left is not None:
                    self._left[fd] -= len(data)
                self._link.send(kind, data)

    def _look_after_child(self) -> None:
        if self._code is None:
            self._code = self._child.poll()
            if self._code is not None:
                self._left = {fd: _waiting(fd) for fd in self._outputs}
                if self._is_ending:
                    self._signal_members(signal.SIGTERM)
                    self._kill_at = min(self._kill_at or 0.0, time.monotonic() + _LEFTOVER_GRACE_S)
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._kill_at = time.monotonic() + 1.0
            self._signal_members(signal.SIGKILL)

    def _is_over(self) -> bool:
        if self._code is None or any((self._left or {}).get(fd) for fd in self._outputs):
            return False
        return not self._is_ending or not self._members()

    def _members(self) -> List[proc.Process]:
        proc.reap_strays(self._child.pid if self._code is None else 0)
        return proc.members(self._mark, self._leader, os.getpid())

    def _signal_members(self, number: int) -> None:
        for process in self._members():
            proc.send(process, number)


def _waiting(fd: int) -> int:
    """How many bytes a pipe holds."""
    size: int = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))[0]
    return size


def _drain(fd: int) -> None:
    try:
        os.read(fd, 512)
    except BlockingIOError:
        pass

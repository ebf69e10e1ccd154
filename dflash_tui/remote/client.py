"""One agent on one host: pushed if it is not there, started, and asked one request at a time.

Knows framing, timeouts and what a lost link looks like. What the operations mean stands in the modules beside it.
"""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Self

import msgspec

from dflash_tui.config import HostSpec
from dflash_tui.errors import HostError, LinkLostError
from dflash_tui.hosts import open_host
from dflash_tui.hosts.base import Channel, Host
from dflash_tui.remote.bundle import agent_file, boot_program
from dflash_tui.remote.frames import FLAGS, NOISE_BYTES, READY, Frames, last_words, told
from dflash_tui.remote.status import RunStatus
from dflash_tui.text import visible

Json = dict[str, Any]

MIN_AGENT_PYTHON = (3, 8)
DEFAULT_WORKDIR = "~"
DEFAULT_PYTHON = "python3"
_BOOT = b"\n@dflash-agent boot "
_HEADER_BYTES = 1 << 24
_LEAVE_S = 2.0


class AgentClient:
    """`workdir` is absolute on the host; `python` is the interpreter there that runs a trainer.

    `command` starts the agent itself, with a verb behind it.
    """

    def __init__(
        self, host: Host, spec: HostSpec, channel: Channel, workdir: str, python: str, command: Sequence[str]
    ) -> None:
        self.host = host
        self.spec = spec
        self.workdir = workdir
        self.python = python
        self.command = command
        # By run, what the agent said last of its state: of one that it follows, it says no more than what is new.
        self.told: dict[str, RunStatus] = {}
        self._channel = channel
        self._frames = Frames(channel)
        self._said = asyncio.create_task(last_words(channel))
        self._turn = asyncio.Lock()
        self._is_lost = False
        self._requests = 0

    @classmethod
    @asynccontextmanager
    async def open(cls, host: Host, spec: HostSpec, *, timeout_s: float = 30) -> AsyncIterator[Self]:
        """An agent that answers, until the `with` is left. HostError or UnreachableError says why there is none."""
        agent = agent_file()
        name = f"{hashlib.sha256(agent).hexdigest()}.pyz"
        place = await _find_place(host, spec, name, timeout_s)
        if not place["there"]:
            await host.put(agent, place["path"])
        interpreter = spec.python or DEFAULT_PYTHON
        command = [interpreter, *FLAGS, place["path"]]
        channel = await host.start([*command, "serve"])
        python = spec.python or place["venv"] or place["executable"]
        client = cls(host, spec, channel, place["workdir"], python, command)
        try:
            await client._greet(timeout_s)
            yield client
        finally:
            await client._leave()

    async def ask(self, ops: Sequence[Json], *, timeout_s: float = 30) -> list[tuple[Json, bytes]]:
        """One request of many operations; for each its result and its bytes. A result with "error" was refused.

        LinkLostError when the link goes or no answer comes in time; the client is of no use after that.
        """
        async with self._turn:
            if self._is_lost:
                raise LinkLostError(f"the link to {self.host.name} was lost: connect again")
            # Lost until proven otherwise: after an answer that was read by half, nothing can be understood.
            self._is_lost = True
            try:
                async with asyncio.timeout(timeout_s):
                    answers = await self._exchange(ops)
            except TimeoutError:
                raise LinkLostError(f"{self.host.name} gave no answer within {timeout_s:g} s") from None
            self._is_lost = False
            return answers

    async def do(self, op: str, *, timeout_s: float = 30, **words: Any) -> Json:
        """One operation, its result; HostError with its reason if it was refused."""
        [(result, _)] = await self.ask([{"op": op, **words}], timeout_s=timeout_s)
        return self.accepted(result)

    def accepted(self, result: Json) -> Json:
        """`result`, unless it was refused: then HostError with the reason."""
        if "error" in result:
            raise HostError(f"{self.host.name}: {visible(str(result['error']))}")
        return result

    async def _exchange(self, ops: Sequence[Json]) -> list[tuple[Json, bytes]]:
        self._requests += 1
        request = {"id": self._requests, "ops": [{"workdir": self.workdir, **op} for op in ops]}
        await self._channel.write(_encoded(request) + b"\n")
        try:
            header = json.loads(await self._frames.until(b"\n", _HEADER_BYTES))
            results, sizes = header["results"], [int(size) for size in header["blobs"]]
            if header["id"] != self._requests or not len(results) == len(sizes) == len(ops):
                raise ValueError("an answer to another request")
            return [
                (dict(result), await self._frames.exactly(size) if size else b"")
                for result, size in zip(results, sizes, strict=True)
            ]
        except EOFError:
            raise LinkLostError(f"the link to {self.host.name} was lost{await self._why()}") from None
        except (ValueError, KeyError, TypeError, RecursionError) as e:
            raise LinkLostError(f"{self.host.name} answered with something that is no answer: {e}") from e

    async def _greet(self, timeout_s: float) -> None:
        """Skip what a login shell may print, up to the agent's mark."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._frames.until(READY, NOISE_BYTES)
        except TimeoutError:
            raise LinkLostError(f"the agent on {self.host.name} did not start within {timeout_s:g} s") from None
        except (EOFError, ValueError):
            raise HostError(f"the agent on {self.host.name} did not start{await self._why()}") from None

    async def _why(self) -> str:
        """What the agent said on stderr before it went, as the end of a sentence."""
        words = await told(self._said)
        return f": {words}" if words else ""

    async def _leave(self) -> None:
        """End of stdin makes the agent go; one that hangs is left to its own idle limit after a moment."""
        with suppress(LinkLostError, TimeoutError):
            async with asyncio.timeout(_LEAVE_S):
                await self._channel.write_eof()
                await self._channel.wait()
        await self._channel.close()
        self._said.cancel()
        # Not awaited itself: its cancellation and the caller's own would be the same exception.
        await asyncio.wait({self._said})


def _encoded(request: Json) -> bytes:
    try:
        return msgspec.json.encode(request)
    except UnicodeEncodeError:
        # A name of the far side that is no UTF-8; Python's own takes five times as long.
        return json.dumps(msgspec.to_builtins(request)).encode()


@asynccontextmanager
async def agent_on(spec: HostSpec) -> AsyncIterator[AgentClient]:
    """An agent on a machine that nobody else has open; both are left with the `with`."""
    host = open_host(spec)
    try:
        async with AgentClient.open(host, spec) as agent:
            yield agent
    finally:
        await host.close()


async def _find_place(host: Host, spec: HostSpec, name: str, timeout_s: float) -> Json:
    """Where the agent goes, from a program that every Python understands."""
    python = spec.python or DEFAULT_PYTHON
    argv = [python, "-I", "-S", "-", spec.workdir or DEFAULT_WORKDIR, name]
    done = await host.run(argv, stdin=boot_program(), timeout_s=timeout_s)
    hint = f"set hosts.{spec.name}.python to a Python 3.8 or newer"
    _, mark, rest = done.stdout.rpartition(_BOOT)
    try:
        place: Json = json.loads(rest) if mark else {}
        version = place["version"]
    except (ValueError, KeyError):
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        why = visible(words[-1][:200]) if words else f"it ended with exit code {done.code} and said nothing"
        raise HostError(f"{python} on {host.name} cannot run the agent ({why}): {hint}") from None
    if tuple(version[:2]) < MIN_AGENT_PYTHON:
        raise HostError(f"{python} on {host.name} is Python {'.'.join(map(str, version))}: {hint}")
    if place["error"]:
        raise HostError(f"{host.name}: {visible(place['error'])}")
    if not place["has_proc"]:
        raise HostError(f"{host.name} has no /proc: runs need a Linux machine")
    return place

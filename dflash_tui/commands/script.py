"""Commands for a script of one's own: run on a host while we wait, or as a run."""

import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dflash_tui.commands import act, completion
from dflash_tui.commands.talk import in_person, in_session, say
from dflash_tui.commands.words import EnvFile, Follow, Gpus, HostName

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dflash_tui.remote.execute import Ended, Streams
    from dflash_tui.remote.scripts import Script

_READ_BYTES = 1 << 16


def exec_script(
    host: Annotated[
        str,
        typer.Argument(
            metavar="HOST", help="A host of config.toml; `local` is this machine.", autocompletion=completion.hosts
        ),
    ],
    file: Annotated[str, typer.Argument(metavar="FILE", help="A script on this machine; `-`: it comes on stdin.")],
    args: Annotated[list[str] | None, typer.Argument(metavar="[ARGS]...", help="Its arguments, as they are.")] = None,
    timeout: Annotated[float | None, typer.Option(metavar="S", help="End it after so long; default: never.")] = None,
    no_stdin: Annotated[bool, typer.Option("-n", "--no-stdin", help="It gets no stdin of ours.")] = False,
) -> None:
    """Run a script on a host and wait for it: its output as it comes, its exit code. Ctrl-C ends it there too."""
    from dflash_tui import config, machines

    spec = config.load().host(host)
    script = _script(file)
    has_stdin = not (no_stdin or file == "-" or sys.stdin.isatty())

    async def work() -> "Ended":
        return await machines.execute(spec, script, args or [], _streams(has_stdin), timeout_s=timeout)

    ended = in_person(work)
    if ended.num_left:
        say(f"{host}: processes that it started live on there ({ended.num_left}), and their output goes nowhere")
    raise typer.Exit(ended.code if ended.code is not None else 128 + (ended.signal or 0))


def launch_script(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A script on this machine that trains.")],
    args: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGS]...", help="Its arguments, as they are.")
    ] = None,
    host: HostName = "local",
    name: Annotated[str | None, typer.Option(metavar="N", help="Default: the file's stem.")] = None,
    log: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Its log on the host, from the run's folder; default: see the README."),
    ] = None,
    gpus: Gpus = None,
    env_file: EnvFile = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what would be started and pushed; start nothing.")
    ] = False,
    follow: Follow = False,
) -> None:
    """Run a trainer of your own as a run: detached, supervised, followed, stopped and resumed like any other."""
    from dflash_tui import config, control, plans
    from dflash_tui.output import report as output
    from dflash_tui.requests import ScriptRequest

    request = ScriptRequest(file, host, tuple(args or ()), name, log, gpus, env_file)
    if dry_run:
        output.dump_json(in_person(partial(plans.plan_script, config.load(), request)), sys.stdout)
        return
    act.fail_unless_finished(
        in_session(partial(act.start, partial(control.launch_script, request=request, warn=say), follow))
    )


def _script(file: str) -> "Script":
    from dflash_tui.remote.scripts import Script, checked, read_script

    return checked(Script("stdin", sys.stdin.buffer.read()), "stdin") if file == "-" else read_script(Path(file))


def _streams(has_stdin: bool) -> "Streams":
    import asyncio

    from dflash_tui.remote.execute import Streams

    async def write(fd: int, data: bytes) -> None:
        # Never on the loop: a reader that stands still must not keep Ctrl-C out.
        await asyncio.to_thread(_write_all, fd, data)

    return Streams(_reader() if has_stdin else None, partial(write, 1), partial(write, 2))


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _reader() -> "Callable[[], Awaitable[bytes]]":
    """Our stdin, a piece at a time, read only when it is asked for.

    In a thread that nobody waits for: one that reads from a pipe which never ends must not outlive the script.
    """
    import asyncio
    import threading

    loop = asyncio.get_running_loop()
    wanted = threading.Semaphore(0)
    pieces: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        data = b"?"
        while data:
            wanted.acquire()
            try:
                data = os.read(0, _READ_BYTES)
            except OSError:
                data = b""
            with suppress(RuntimeError):  # The loop has ended meanwhile.
                loop.call_soon_threadsafe(pieces.put_nowait, data)

    threading.Thread(target=read, daemon=True).start()

    async def next_piece() -> bytes:
        wanted.release()
        return await pieces.get()

    return next_piece

"""Commands that act on runs, and those that stay: launch, stop, resume, watch, demo."""

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dflash_tui.commands import completion
from dflash_tui.commands.talk import find, has_terminal, in_person, in_session, say, store_options
from dflash_tui.commands.words import EnvFile, Follow, Gpus, HostName, RunName, Settings
from dflash_tui.errors import DflashError, UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dflash_tui.remote.plan import LaunchPlan
    from dflash_tui.runs import Run, RunRecord
    from dflash_tui.watch import Session


def launch(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE", help="A bundled recipe's name, or a .toml file.", autocompletion=completion.recipes
        ),
    ],
    host: HostName = "local",
    name: Annotated[str | None, typer.Option(metavar="N", help="Default: the recipe's name.")] = None,
    settings: Settings = None,
    gpus: Gpus = None,
    env_file: EnvFile = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, print the config and what would run; start nothing.")
    ] = False,
    follow: Follow = False,
) -> None:
    """Start a run, detached; returns once it is running, or says why not."""
    from dflash_tui import config, control, plans, recipes
    from dflash_tui.requests import LaunchRequest

    request = LaunchRequest(recipe, host, name, tuple(settings or ()), gpus, env_file)
    if dry_run:
        checked, known = recipes.load(recipe, request.settings), config.load()
        _tell_plan(checked.config, in_person(partial(plans.plan_launch, known, request, checked.config)))
        return

    fail_unless_finished(in_session(partial(start, partial(control.launch, request=request, warn=say), follow)))


def _tell_plan(found: dict[str, Any], plan: "LaunchPlan | None") -> None:
    from dflash_tui.output import report as output
    from dflash_tui.output.plan import plan_lines

    output.dump_json(found, sys.stdout)
    for line in plan_lines(plan) if plan else ():
        say(line)


async def start(launch: "Callable[[Session], Awaitable[RunRecord]]", follow: bool, session: "Session") -> "Run | None":
    """Launch and say its id; follow it to its end if that is wanted."""
    record = await launch(session)
    print(record.run_id, flush=True)
    return await _follow(session, record.run_id) if follow else None


def stop(
    run: RunName,
    grace: Annotated[
        float | None, typer.Option(metavar="S", help="Seconds it may take to save; default: [stop].")
    ] = None,
    kill: Annotated[bool, typer.Option("--kill", help="End it now: nothing is saved.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Stop a run; returns once it has ended and that is recorded."""
    from dflash_tui import control
    from dflash_tui.store.access import reader
    from dflash_tui.text import visible

    if not yes:
        # Before a seat is taken: whoever thinks about an answer must not hold the store.
        with reader(say, store_options()) as store:
            found, _ = store.find(run)
            detail = store.detail(found.run_id)
        _confirm(
            f"{'Kill' if kill else 'Stop'} {found.run_id} on {found.host} ({found.state})?{control.stranger(detail)}"
        )

    async def work(session: "Session") -> "Run":
        return await control.stop(session, (await find(session, run)).run_id, grace_s=grace, kill=kill)

    ended = in_session(work)
    print(visible(f"{ended.run_id}: {ended.state} ({ended.reason})"))


def _confirm(question: str) -> None:
    if not has_terminal():
        raise UsageError(f"{question} Nobody is there to answer: add --yes")
    if not typer.confirm(question, err=True):
        raise KeyboardInterrupt


def resume(run: RunName) -> None:
    """Go on from a run's newest checkpoint, as its next attempt."""
    from dflash_tui import control

    async def work(session: "Session") -> "Run":
        return await control.resume(session, (await find(session, run)).run_id, say)

    resumed = in_session(work)
    print(f"{resumed.run_id}: {resumed.state}, attempt {resumed.attempt}")


def clone(
    run: RunName,
    args: Annotated[list[str] | None, typer.Argument(metavar="[-- ARGS]...", help="Other words for a script.")] = None,
    settings: Settings = None,
    host: Annotated[
        str | None, typer.Option(metavar="H", help="Default: where it ran.", autocompletion=completion.hosts)
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="N", help="Default: its name.")] = None,
    gpus: Gpus = None,
    env_file: EnvFile = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what would be started and pushed; start nothing.")
    ] = False,
    follow: Follow = False,
) -> None:
    """Start a run like another one, with some settings changed; it is that one's child."""
    from dflash_tui import config, control, plans
    from dflash_tui.requests import CloneRequest
    from dflash_tui.store.access import reader

    def request(run_id: str) -> CloneRequest:
        words = None if args is None else tuple(args)
        return CloneRequest(run_id, tuple(settings or ()), words, host, name, gpus, env_file)

    if dry_run:
        with reader(say, store_options()) as store:
            found, notice = store.find(run)
            record = store.detail(found.run_id).record
        if notice:
            say(notice)
        _tell_plan(*in_person(partial(plans.plan_clone, config.load(), record, request(record.run_id))))
        return

    async def launch(session: "Session") -> "RunRecord":
        return await control.clone(session, request((await find(session, run)).run_id), say)

    fail_unless_finished(in_session(partial(start, launch, follow)))


def forget(run: RunName, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False) -> None:
    """Take a run off this machine: its rows and its mirror. Its host is never touched."""
    from dflash_tui import control
    from dflash_tui.store.access import reader

    with reader(say, store_options()) as store:
        found, notice = store.find(run)
        with store.query("select count(*) from records where run = $run", {"run": found.run_id}) as answer:
            [(num_rows,)] = answer.rows()
    if notice:
        say(notice)
    if not yes:
        _confirm(control.forget_question(found, num_rows))

    async def work(session: "Session") -> None:
        await control.forget(session, found.run_id)

    in_session(work)
    print(f"{found.run_id}: forgotten here" + (f"; {found.host} still has it" if found.host else ""))


def watch() -> None:
    """Collect from every host until interrupted: a session without a screen."""
    import asyncio

    from dflash_tui.alerts import Alert
    from dflash_tui.commands.talk import ring

    async def work(session: "Session") -> None:
        def tell(alert: Alert | str) -> None:
            if isinstance(alert, str):
                say(alert)
                return
            say(f"{alert.run.name}: {alert.finding.severity}: {alert.finding.sentence}")
            if session.config.alerts.bell:
                ring()

        session.alerted = tell
        say(
            f"collecting into {session.place}" if session.is_owner else "another session collects; waiting to take over"
        )
        await asyncio.Event().wait()

    in_session(work)


def demo(
    steps: Annotated[int | None, typer.Option(metavar="N", help="Optimizer steps; default: the recipe's.")] = None,
) -> None:
    """Train a small real drafter on this machine, detached, and open the session on it."""
    from dflash_tui import control
    from dflash_tui.output import report as output
    from dflash_tui.requests import LaunchRequest
    from dflash_tui.runs import Window

    request = LaunchRequest("tiny", "local", "demo", () if steps is None else (f"total_steps={steps}",))
    on_screen = has_terminal()

    async def work(session: "Session") -> "Run | None":
        record = await control.launch(session, request)
        say(f"{record.run_id} runs detached: neither this terminal nor a session can end it by closing")
        if on_screen:
            return await session.ask(lambda store: store.detail(record.run_id).run)
        ended = await _follow(session, record.run_id)
        panels = await session.ask(lambda store: store.report(ended.run_id, None, Window(), buckets=120))
        laid = await session.ask(lambda store: store.window(ended.run_id, Window()))
        output.write_report(f"{ended.name} ({ended.state})", laid, panels, sys.stdout)
        return ended

    run = in_session(work)
    if on_screen and run is not None:
        from dflash_tui.ui.app import run_app

        if words := run_app(run.run_id):
            say(words)
    else:
        fail_unless_finished(run)


async def _follow(session: "Session", run_id: str) -> "Run":
    from dflash_tui import progress

    return await progress.follow(session, run_id, say)


def fail_unless_finished(run: "Run | None") -> None:
    if run is not None and run.state != "finished":
        raise DflashError(f"{run.run_id} is {run.state} ({run.reason}): `dflash-tui logs {run.run_id}` has its words")

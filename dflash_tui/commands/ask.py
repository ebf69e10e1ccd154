"""Commands that ask: they read the store and print; `ingest` takes logs of this machine into it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dflash_tui.commands import completion
from dflash_tui.commands.talk import find, in_session, say, store_options
from dflash_tui.commands.words import AsJson, RunName
from dflash_tui.errors import UsageError

if TYPE_CHECKING:
    from dflash_tui.runs import Run, Window
    from dflash_tui.store.base import Finding, IngestSummary, PanelResult, ResolvedWindow
    from dflash_tui.watch import Session


def runs(as_json: AsJson = False) -> None:
    """List the runs, the newest first."""
    from dataclasses import asdict

    from dflash_tui.output import report as output
    from dflash_tui.store.access import reader
    from dflash_tui.text import duration

    with reader(say, store_options()) as store:
        found = store.runs()
    if as_json:
        output.dump_json([asdict(run) for run in found], sys.stdout)
        return
    columns = ["run", "name", "host", "state", "step", "of", "age", "no contact"]
    rows = [
        [r.run_id, r.name, r.host, _state(r), r.step, r.total_steps, duration(r.age_s), duration(r.no_contact_s)]
        for r in found
    ]
    print(output.draw_table(columns, rows) if rows else "no runs yet: start one with `dflash-tui demo` or `launch`")


def status(run: RunName, as_json: AsJson = False) -> None:
    """All that is known of one run."""
    from dflash_tui.output import report as output
    from dflash_tui.store.access import reader
    from dflash_tui.store.screens import ask_screen

    with reader(say, store_options()) as store:
        found, notice = store.find(run)
        checkpoints = ask_screen(store, "checkpoint", {"run": found.run_id})
        tree = output.status_tree(store.detail(found.run_id), checkpoints)
    if notice:
        say(notice)
    if as_json:
        output.dump_json(tree, sys.stdout)
        return
    # Whoever reads a process's number will paste it: 24915, not 24,915.
    rows = [[key, str(value) if key == "pid" else value] for key, value in tree.items() if value is not None]
    print(output.draw_table(["", tree["run_id"]], rows[1:]))


def _state(run: "Run") -> str:
    return f"{run.state} ({run.reason})" if run.reason else run.state


def report(
    run: RunName,
    panel: Annotated[
        list[str] | None,
        typer.Option(metavar="P", help="Only this panel; may be repeated.", autocompletion=completion.panels),
    ] = None,
    last: Annotated[int | None, typer.Option(metavar="N", help="The N of statistics over the last N rows.")] = None,
    from_step: Annotated[int | None, typer.Option("--from", metavar="A", help="First step of the window.")] = None,
    to_step: Annotated[int | None, typer.Option("--to", metavar="B", help="Last step of the window.")] = None,
    windows: Annotated[
        tuple[str, str] | None, typer.Option(metavar="A..B C..D", help="What early against late means: two windows.")
    ] = None,
    as_json: AsJson = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="One self-contained page: panels, charts, findings.")
    ] = None,
) -> None:
    """Print every panel of a run: its figures, or why there are none."""
    from dflash_tui.output import report as output
    from dflash_tui.runs import parse_range
    from dflash_tui.store.access import reader

    if as_json and html:
        raise UsageError("--json and --html exclude each other: ask for one")
    window = _window(last, from_step, to_step)
    stretches = (parse_range(windows[0]), parse_range(windows[1])) if windows else None
    with reader(say, store_options()) as store:
        found, notice = store.find(run)
        laid = store.window(found.run_id, window)
        panels = store.report(found.run_id, panel, window, 200 if html else 120, stretches)
        findings = store.check(found.run_id) if html else []
    if notice:
        say(notice)
    if html:
        _write_page(html, found, laid, panels, findings)
    elif as_json:
        output.dump_json(output.report_tree(found.run_id, laid, panels), sys.stdout)
    else:
        output.write_report(f"{found.name} ({found.state})", laid, panels, sys.stdout)


def _write_page(
    file: Path, run: "Run", laid: "ResolvedWindow", panels: "list[PanelResult]", findings: "list[Finding]"
) -> None:
    import time

    from dflash_tui.output.html import report_page
    from dflash_tui.output.sink import file_sink

    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    with file_sink(file) as sink:
        sink.write(report_page(run, laid, panels, findings, when))


def _window(last: int | None, first: int | None, to: int | None) -> "Window":
    from dflash_tui.runs import Window

    if last is not None and (first is not None or to is not None):
        raise UsageError("--last and --from/--to exclude each other: give one window")
    if last is not None:
        return Window.last_rows(last)
    if first is not None or to is not None:
        return Window.between(0 if first is None else first, 2**62 if to is None else to)
    return Window()


def logs(
    run: RunName,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the run ends.")] = False,
    metrics: Annotated[
        bool, typer.Option("--metrics", help="The log's records, not what the trainer printed.")
    ] = False,
    since_step: Annotated[int | None, typer.Option(metavar="N", help="Records from this step on.")] = None,
) -> None:
    """Print what a run's trainer said, or with --metrics its records."""
    import asyncio

    from dflash_tui.store.access import reader
    from dflash_tui.store.tail import Tail

    def look(run_id: str) -> Tail:
        return Tail(run_id, metrics or since_step is not None, since_step)

    async def work(session: "Session") -> None:
        tail = look((await find(session, run)).run_id)
        session.focus(tail.run_id)
        while True:
            found = (await session.ask(lambda store: store.detail(tail.run_id))).run
            # Never on the loop: a reader that stands still, `| less`, must not hold up collecting.
            await asyncio.to_thread(lambda: _print_lines(tail.read()))
            if _is_written_by_nobody(found):
                break
            await asyncio.sleep(0.25)
        await asyncio.to_thread(lambda: _print_lines(tail.rest()))

    if follow:
        in_session(work)
        return
    with reader(say, store_options()) as store:
        found, notice = store.find(run)
    if notice:
        say(notice)
    tail = look(found.run_id)
    lines = tail.read() + tail.rest()
    _print_lines(lines)
    if not lines:
        what = "no such record" if tail.metrics else "nothing printed"
        fetches = "" if _is_written_by_nobody(found) else ": an open session or `dflash-tui watch` fetches it"
        say(f"{found.name}: {what} is here yet{fetches}")


def _is_written_by_nobody(run: "Run") -> bool:
    """It has ended, or is absent, or has no host."""
    from dflash_tui.runs import RunState

    return RunState(run.state).is_over or run.state == RunState.ABSENT or run.host is None


def _print_lines(lines: list[str]) -> None:
    from dflash_tui.text import visible

    for line in lines:
        print(visible(line, keep="\t"), flush=False)
    sys.stdout.flush()


def panels() -> None:
    """List the panels: bundled ones, and those in the config folder's panels/."""
    from dflash_tui import paths
    from dflash_tui.output import report as output
    from dflash_tui.store.panel_files import load_panels

    rows = [[p.name, p.title, p.chart, " ".join(p.help.split())] for p in load_panels()]
    print(output.draw_table(["panel", "title", "chart", "help"], rows))
    say(f"a new panel is one .sql file in {paths.config_dir() / 'panels'}")


def ingest(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Logs on this machine.")],
    run: Annotated[
        str | None, typer.Option(metavar="N", help="Run id and name, also of several parts; default: the file's stem.")
    ] = None,
    shape: Annotated[
        str | None, typer.Option("--as", metavar="SHAPE", help="jsonl, text or trainer_state; default: as it looks.")
    ] = None,
) -> None:
    """Take logs on this machine into the store; again, and only what is new is read."""
    from dflash_tui.bar import IngestBar
    from dflash_tui.store.access import writer
    from dflash_tui.store.shapes import SHAPES
    from dflash_tui.store.sources import runs_of
    from dflash_tui.text import did_you_mean

    if shape is not None and shape not in SHAPES:
        raise UsageError(f"--as {shape}: {did_you_mean(shape, SHAPES)}")
    jobs = runs_of(files, run)
    with writer(say, store_options()) as store:
        for file, run_id in jobs:
            with IngestBar(file.name) as bar:
                summary = store.ingest(run_id, file, shape=shape, progress=bar.show)
            _tell_ingested(file, summary)


def _tell_ingested(file: Path, summary: "IngestSummary") -> None:
    from dflash_tui.text import number, numbered

    for reject in summary.first_rejects:
        say(f"{file}:{reject.line_no}: {reject.reason}")
    if summary.rejects > len(summary.first_rejects):
        say(f"{file}: ... and {summary.rejects - len(summary.first_rejects)} more, all of them in the table rejects")
    for warning in summary.warnings:
        say(f"{file}: {warning}")
    if summary.rows_without_step:
        say(f"{file}: {numbered(summary.rows_without_step, 'row')} without a step (placed by order)")
    if summary.held_back_bytes:
        say(f"{file}: the last line has no end yet ({numbered(summary.held_back_bytes, 'byte')} held back)")
    print(
        f"{summary.run_id}: {numbered(summary.rows, 'row')}, {number(summary.rejects)} rejected,"
        f" {numbered(summary.attempts, 'attempt')}, last step {number(summary.last_step)}"
    )

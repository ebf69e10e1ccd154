"""Commands about machines: which there are and how they stand, a thorough look at one, a new one, runs found there."""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dflash_tui.commands import completion
from dflash_tui.commands.examples import under
from dflash_tui.commands.talk import in_person, in_session, say, store_options
from dflash_tui.commands.words import AsJson
from dflash_tui.errors import ExitCode, UnreachableError

if TYPE_CHECKING:
    from dflash_tui.machines import Look
    from dflash_tui.remote.check import Finding
    from dflash_tui.watch import Session

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="A host of config.toml; `local` is this machine.", autocompletion=completion.hosts
    ),
]

app = typer.Typer(invoke_without_command=True, rich_markup_mode=None)


@app.callback()
def hosts(context: typer.Context, as_json: AsJson = False) -> None:
    """Show every host: whether it answers, its GPUs, disk, clock and runs."""
    if context.invoked_subcommand is not None:
        return
    import asyncio

    from dflash_tui import config, machines
    from dflash_tui.output import report as output

    # Nobody is asked anything: a question would hold up the others.
    looks = asyncio.run(machines.look_at_all(config.load().hosts.values()))
    contacts = _contacts()
    trees = [_tree(look, contacts) for look in looks]
    if as_json:
        output.dump_json(trees, sys.stdout)
        return
    columns = ["host", "kind", "address", "state", "latency", "gpus", "disk free", "clock", "runs", "note"]
    print(output.draw_table(columns, [_row(tree) for tree in trees]))


@app.command(epilog=under("hosts check"))
def check(name: Name) -> None:
    """Look at one host thoroughly: a line for each finding, with what to do; exit code 6 if there is something."""
    from dflash_tui import config, machines
    from dflash_tui.text import visible

    spec = config.load().host(name)
    known = frozenset(_known_runs())
    findings = in_person(lambda: machines.check(spec, known))
    for one in findings:
        mark = "ok" if one.is_well else "DO"
        print(f"{mark:2}  {one.what:9}  {visible(one.sentence)}", flush=True)
    raise typer.Exit(_code(findings))


@app.command(epilog=under("hosts add"))
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the host is to be called.")],
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="A name of ~/.ssh/config, user@host:port or [v6]:port.")
    ],
    vmid: Annotated[int | None, typer.Option(metavar="N", help="A container of that Proxmox node.")] = None,
    python: Annotated[str | None, typer.Option(metavar="PATH", help="The interpreter there.")] = None,
    workdir: Annotated[str | None, typer.Option(metavar="DIR", help="Where things go there; default: ~.")] = None,
    sudo: Annotated[bool, typer.Option("--sudo", help="Use `sudo -n pct`.")] = False,
    no_check: Annotated[bool, typer.Option("--no-check", help="Write it down without a word with the host.")] = False,
) -> None:
    """Add a host to config.toml: reach it first, ask whether its key is right, tell what was found."""
    from dflash_tui import config, machines
    from dflash_tui.text import visible

    kind = "ssh" if vmid is None else "proxmox"
    keys = {"kind": kind, "address": address, "vmid": vmid, "python": python, "workdir": workdir, "sudo": sudo or None}
    addition = config.Addition(name, {key: value for key, value in keys.items() if value is not None})
    if not no_check:
        for one in in_person(lambda: machines.check(addition.spec)):
            if one.what == "reach" and not one.is_well:
                raise UnreachableError(f"{one.sentence}; nothing was written: --no-check writes it all the same")
            say(f"{'ok' if one.is_well else 'DO':2}  {one.what:9}  {visible(one.sentence)}")
    print(f"{name}: written to {addition.write()}")


@app.command(epilog=under("hosts scan"))
def scan(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Default: every host.", autocompletion=completion.hosts),
    ] = None,
) -> None:
    """Find the runs that lie on hosts and are not known here, and bring them here."""
    from dflash_tui import adoption

    async def work(session: "Session") -> list[adoption.Scanned]:
        wanted = names or list(session.config.hosts)
        for name in wanted:
            session.config.host(name)
        return [await adoption.scan(session, name, say) for name in wanted]

    scanned = in_session(work)
    for one in scanned:
        for run_id in one.brought:
            print(run_id)
    if failed := [one.trouble for one in scanned if one.trouble]:
        raise failed[0]


def _code(findings: "list[Finding]") -> ExitCode:
    if any(one.what == "reach" and not one.is_well for one in findings):
        return ExitCode.UNREACHABLE
    return ExitCode.OK if all(one.is_well for one in findings) else ExitCode.FINDINGS


def _known_runs() -> list[str]:
    return [row[0] for row in _ask("select run from runs")]


def _contacts() -> dict[str, float]:
    """When each host was heard last, by what the collector noted."""
    return {host: time for host, time in _ask("select host, max(contact) from runs group by host") if time is not None}


def _ask(sql: str) -> list[Any]:
    """Of a store that is not there yet, nothing."""
    from dflash_tui.errors import UsageError
    from dflash_tui.store.access import reader

    try:
        with reader(say, store_options()) as store, store.query(sql) as answer:
            return answer.rows()
    except UsageError:
        return []


def _tree(look: "Look", contacts: dict[str, float]) -> dict[str, Any]:
    """One host as scripts build on it."""
    spec, view = look.spec, look.view
    note = look.note or (view.no_gpus if view and view.gpus is None else None)
    gpus = None if view is None or view.gpus is None else [asdict(gpu) | {"says": str(gpu)} for gpu in view.gpus]
    return {
        "name": spec.name,
        "kind": spec.kind,
        "address": spec.address,
        "vmid": spec.vmid,
        "state": look.state,
        "since": None if look.state == "reachable" else contacts.get(spec.name),
        "latency_ms": round(view.latency_ms, 1) if view else None,
        "gpus": gpus,
        "disk_free": view.disk_free if view else None,
        "clock_offset_s": round(view.clock_offset_s, 3) if view else None,
        "runs": len(view.living) if view else None,
        "note": note,
    }


def _row(tree: dict[str, Any]) -> list[Any]:
    gpus = [f"{gpu['index']}: {gpu['says']}" for gpu in tree["gpus"] or []]
    vmid = f" ct {tree['vmid']}" if tree["vmid"] else ""
    return [
        tree["name"],
        tree["kind"],
        f"{tree['address'] or '-'}{vmid}",
        tree["state"],
        None if tree["latency_ms"] is None else f"{tree['latency_ms']:.0f} ms",
        "; ".join(gpus) or None,
        None if tree["disk_free"] is None else f"{tree['disk_free'] / 2**30:.1f} GiB",
        None if tree["clock_offset_s"] is None else f"{tree['clock_offset_s']:+.1f} s",
        tree["runs"],
        tree["note"],
    ]

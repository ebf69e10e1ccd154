"""`attach`: a run that somebody else started, taken up where it is."""

from typing import TYPE_CHECKING, Annotated

import typer

from dflash_tui.commands.talk import in_session, say
from dflash_tui.commands.words import HostName

if TYPE_CHECKING:
    from dflash_tui.adoption import Attached
    from dflash_tui.remote.adopt import FoundLog
    from dflash_tui.watch import Session

_COMMAND_CHARACTERS = 400


def attach(
    log: Annotated[str, typer.Option(metavar="PATH", help="A log on the host: absolute, or from its workdir or ~.")],
    host: HostName = "local",
    name: Annotated[str | None, typer.Option(metavar="N", help="Default: by the log's file or folder.")] = None,
) -> None:
    """Follow a log that is written by a run we did not start; say what could be found out about that."""
    from dflash_tui import adoption

    async def work(session: "Session") -> "Attached":
        return await adoption.attach(session, adoption.AttachRequest(host, log, name))

    attached = in_session(work)
    for sentence in told(attached.found, attached.record.shape):
        say(sentence)
    print(attached.record.run_id)


def told(found: "FoundLog", shape: str) -> list[str]:
    """What was found out about a log, and what was not."""
    from dflash_tui.masking import masked
    from dflash_tui.text import duration, number, visible

    words = f"{found.path}: {number(found.size)} bytes, written {duration(found.age_s)} ago, reads as {shape}"
    # Once somebody was seen with the log open, nobody else is of interest.
    is_hidden = found.num_hidden and found.how != "open"
    hidden = f"; processes of other users ({found.num_hidden}) could not be looked into" if is_hidden else ""
    if found.process:
        command = visible(" ".join(masked(found.process.argv))[:_COMMAND_CHARACTERS])
        process = f"process {found.process.pid}, since {duration(found.process.age_s)}: {command}"
        how = {
            "open": "it has the log open",
            "argument": "a guess: nobody has the log open, and this one names it",
            "cwd": "a guess: nobody has the log open, and this one works in its folder",
        }[found.how or "open"]
        return [words, f"{process} ({how}){hidden}", "how it ends, only its log can say: its exit code goes elsewhere"]
    if found.others:
        pids = ", ".join(str(process.pid) for process in found.others)
        return [words, f"whose it is could not be found out: it may be process {pids}{hidden}; it cannot be stopped"]
    return [words, f"whose it is could not be found out: nobody has it open, names it or works there{hidden}"]

"""The words that several commands take."""

from typing import Annotated

import typer

from dflash_tui.commands import completion

RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="A run id, a name, or a unique beginning of an id.", autocompletion=completion.runs
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One strict JSON document instead of a table.")]
HostName = Annotated[
    str,
    typer.Option(
        "--host", metavar="H", help="A host of config.toml; `local` is this machine.", autocompletion=completion.hosts
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Over the config.", autocompletion=completion.settings),
]
Gpus = Annotated[str | None, typer.Option(metavar="0,1", help="The GPUs it may see, by number; default: all.")]
EnvFile = Annotated[
    str | None, typer.Option(metavar="FILE", help="NAME=value lines for its environment: the place for secrets.")
]
Follow = Annotated[bool, typer.Option("--follow", help="Stay and tell how it goes until it ends.")]

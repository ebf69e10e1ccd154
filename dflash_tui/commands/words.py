"""The words that several commands take."""

from typing import Annotated

import typer

RunName = Annotated[str, typer.Argument(metavar="RUN", help="A run id, a name, or a unique beginning of an id.")]
AsJson = Annotated[bool, typer.Option("--json", help="One strict JSON document instead of a table.")]

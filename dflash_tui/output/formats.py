"""The formats of an answer, each a stream of pieces of text: a batch of rows in, a piece out, nothing kept.

A piece is written before the next batch is asked for, so the first row of a large answer is there at once.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath
from typing import Any

from dflash_tui.errors import UsageError
from dflash_tui.text import did_you_mean

Batches = Iterable[list[tuple[Any, ...]]]
Pieces = Callable[[list[str], list[str], Batches], Iterator[str]]

FORMATS = ("table", "csv", "json", "jsonl", "md", "parquet")
ENDINGS = {
    ".txt": "table",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".md": "md",
    ".parquet": "parquet",
}


def format_named(name: str) -> str:
    """`name`, if it is a format's."""
    if name in FORMATS:
        return name
    raise UsageError(f"--format {name}: {did_you_mean(name, FORMATS)}")


def format_of(file: PurePath) -> str:
    """The format that the name of a file asks for; csv where it has no ending."""
    if not file.suffix:
        return "csv"
    try:
        return ENDINGS[file.suffix.lower()]
    except KeyError:
        raise UsageError(f"--output {file}: no format goes with {file.suffix}; give --format") from None


def pieces_of(name: str, *, width: int | None, tell: Callable[[str], None]) -> Pieces:
    """What writes a format of text, exactly; with `width`, that of a terminal, so that the terminal obeys nothing of it
    and a table fits, and `tell` hears what was left out."""
    if name == "csv":
        from dflash_tui.output.csv import csv_pieces, shown_csv_pieces

        return csv_pieces if width is None else shown_csv_pieces
    if name == "table":
        from dflash_tui.output.table import fitted_table, table_pieces

        return table_pieces if width is None else fitted_table(width, tell)
    if name == "md":
        from dflash_tui.output.markdown import markdown_pieces

        return markdown_pieces
    from dflash_tui.output.json import json_pieces, jsonl_pieces

    return json_pieces if name == "json" else jsonl_pieces

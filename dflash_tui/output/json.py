"""Strict JSON in printable ASCII, an object a row: one list (`json`), or one object a line (`jsonl`)."""

from collections.abc import Iterator

from dflash_tui.output.formats import Batches
from dflash_tui.output.values import json_text, json_texts


def json_pieces(columns: list[str], types: list[str], batches: Batches) -> Iterator[str]:
    """A list of objects, one row a line."""
    separator = "[\n"
    for lines in _lines(columns, types, batches):
        yield separator + ",\n".join(lines)
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def jsonl_pieces(columns: list[str], types: list[str], batches: Batches) -> Iterator[str]:
    for lines in _lines(columns, types, batches):
        yield "\n".join(lines) + "\n"


def _lines(columns: list[str], types: list[str], batches: Batches) -> Iterator[list[str]]:
    keys = [json_text(name).replace("%", "%%") for name in unique(columns)]
    row = "{" + ", ".join(f"{key}: %s" for key in keys) + "}"
    for batch in batches:
        cells = [json_texts(kind, column) for kind, column in zip(types, zip(*batch, strict=True), strict=True)]
        yield [row % line for line in zip(*cells, strict=True)]


def unique(names: list[str]) -> list[str]:
    """Names of columns, a second `a` as `a_1`: the keys of an object must differ, or a column would be lost."""
    taken = set(names)
    seen: set[str] = set()
    found = []
    for name in names:
        new, n = name, 0
        while new in seen or (n and new in taken):
            n += 1
            new = f"{name}_{n}"
        seen.add(new)
        found.append(new)
    return found

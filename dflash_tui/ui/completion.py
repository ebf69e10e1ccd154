"""What a person may be about to write: the beginning of a word and the names that go on from there. Pure."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dflash_tui.store.functions import FUNCTIONS, TABLE_FUNCTIONS
from dflash_tui.ui.catalog import Catalog
from dflash_tui.ui.sql_text import KEYWORDS, Token, tokens

MOST = 60
_BEFORE_TABLES = frozenset({"from", "join", "describe", "summarize"})
_BEGUN = re.compile(r"\$?\w*\Z")


class Choice(NamedTuple):
    text: str
    kind: str


class Completion(NamedTuple):
    """`begun` is the part that stands there already."""

    begun: str
    choices: list[Choice]


def complete(before: str, after: str, catalog: Catalog, parameters: Sequence[str]) -> Completion:
    """For a cursor between the two parts of one statement."""
    found = list(tokens(before))
    last = found[-1] if found else None
    if last and last.kind == "comment" and not before[last.stop :].strip(" "):
        return Completion("", [])
    if last and last.kind == "string" and last.stop == len(before) and not _is_closed(last):
        return _matching(last.text[1:], [Choice(run.run_id, "run") for run in catalog.runs])
    match = _BEGUN.search(before)
    begun = match[0] if match else ""
    if begun[:1].isdigit():
        return Completion("", [])
    if begun.startswith("$"):
        return _matching(begun, [Choice(f"${name}", "value") for name in parameters])
    words = found[:-1] if begun else found
    if words and words[-1].text == ".":
        owner = words[-2].text if len(words) > 1 else ""
        return _matching(begun, list(_columns_of(_table_named(owner, before + after), catalog)))
    if not begun:
        return Completion("", [])
    tables = [Choice(table.name, table.kind) for table in catalog.tables]
    previous = words[-1].text.lower() if words else ""
    if previous in _BEFORE_TABLES:
        return _matching(begun, tables + [Choice(f"{name}(", "function") for name in sorted(TABLE_FUNCTIONS)])
    return _matching(begun, list(_anything(before + after, catalog, tables)))


def _is_closed(string: Token) -> bool:
    return len(string.text) > 1 and string.text.endswith("'")


def _anything(statement: str, catalog: Catalog, tables: list[Choice]) -> Iterator[Choice]:
    """The likeliest first: columns of the tables that the statement names; of the steps while it names none."""
    words = {token.text.lower() for token in tokens(statement) if token.kind == "word"}
    named = [table.name for table in catalog.tables if table.name in words]
    for name in named or ["steps"]:
        yield from _columns_of(name, catalog)
    yield from tables
    for word in sorted(KEYWORDS):
        yield Choice(word, "")
    for name in sorted(FUNCTIONS):
        yield Choice(f"{name}(", "function")
    for table in catalog.tables:
        yield from _columns_of(table.name, catalog)


def _columns_of(name: str, catalog: Catalog) -> Iterator[Choice]:
    for table in catalog.tables:
        if table.name == name:
            yield from (Choice(one.column, one.type.lower()) for one in table.columns)


def _table_named(name: str, statement: str) -> str:
    """The table behind an alias: `from steps s`, `join steps as s`."""
    found = re.search(rf"\b(?:from|join)\s+(\w+)\s+(?:as\s+)?{re.escape(name)}\b", statement, re.IGNORECASE)
    return found[1].lower() if found else name.lower()


def _matching(begun: str, choices: list[Choice]) -> Completion:
    """Those that begin so; then those that have it in the middle. None that is there whole already."""
    small = begun.lower()
    found: dict[str, Choice] = {}
    for choice in choices:
        found.setdefault(choice.text, choice)
    ordered = list(found.values())
    begins = [choice for choice in ordered if choice.text.lower().startswith(small)]
    if any(choice.text.lower() == small for choice in begins):
        begins = [choice for choice in begins if choice.text.lower() != small]
        return Completion(begun, begins[:MOST])
    inside = [choice for choice in ordered if small in choice.text.lower()[1:] and choice not in begins]
    return Completion(begun, (begins + (inside if len(small) > 2 else []))[:MOST])

"""What can be asked for: tables with their columns, panels, runs. Read in a thread; a value, draws nothing."""

from functools import cache
from typing import NamedTuple

from dflash_tui.runs import Run
from dflash_tui.store.base import Store
from dflash_tui.store.meanings import Meaning, meanings
from dflash_tui.store.panel_files import Panel, load_panels


class Table(NamedTuple):
    name: str
    kind: str
    means: str
    columns: tuple[Meaning, ...]


class Catalog(NamedTuple):
    tables: tuple[Table, ...] = ()
    panels: tuple[Panel, ...] = ()
    runs: tuple[Run, ...] = ()
    """The newest first."""


def read_catalog(store: Store) -> Catalog:
    """As things are now. Blocking; raises DflashError."""
    return Catalog(_tables(), tuple(load_panels()), tuple(store.runs()))


@cache
def _tables() -> tuple[Table, ...]:
    found: list[Table] = []
    columns: list[Meaning] = []
    for one in reversed(meanings()):
        if one.column == "*":
            found.append(Table(one.table, one.type, one.means, tuple(reversed(columns))))
            columns = []
        else:
            columns.append(one)
    return tuple(reversed(found))

"""What sql/schema.sql makes: the names in it and its version. It is the only place that lists them."""

import re
from functools import cache

from dflash_tui import paths


@cache
def _text() -> str:
    return (paths.bundled("sql") / "schema.sql").read_text(encoding="utf-8")


def script() -> str:
    """What makes the tables of a new database."""
    return _text()


def version() -> int:
    """What the table `store` must say, or the tables are another program's."""
    found = re.search(r"^insert into store values \((\d+)\);", _text(), re.M)
    assert found
    return int(found[1])


# How rows lie on disk, how far mirrors are read, what a version made it: not for people, though nobody hides them.
INTERNAL = frozenset(
    {"store", "registered", "cursors", "cuts", "keys", "step_rows", "other_rows", "logged", "counted", "core"}
)


def public_columns() -> set[str]:
    """The columns of all tables that people ask."""
    # For an error alone: every query loads this module.
    import tomllib

    told = tomllib.loads((paths.bundled("sql") / "columns.toml").read_text(encoding="utf-8"))
    return {name for table, columns in told.items() if table not in ("tables", "like") for name in columns}


def names() -> list[str]:
    """All tables and views, the internal ones too. Asking the database for them takes 10 ms."""
    return re.findall(r"^create (?:table|view) (\w+)", _text(), re.M)

"""The questions that screens and commands ask beside the panels: SQL files in `sql/screens/`, small answers."""

from typing import Any

from dflash_tui import paths
from dflash_tui.store.base import Row, Store


def ask_screen(store: Store, name: str, params: dict[str, Any] | None = None) -> list[Row]:
    """The rows of `sql/screens/<name>.sql`; errors as in `Store.query`."""
    sql = (paths.bundled("sql") / "screens" / f"{name}.sql").read_text(encoding="utf-8")
    with store.query(sql, params, timeout_s=20) as answer:
        return answer.rows()

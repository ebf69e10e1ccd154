"""DuckDB, as every module of the store imports it: loaded as a whole, or not at all.

A Ctrl-C that meets its library in the making aborts the process, or leaves half of it behind, which aborts it later.
"""

from dflash_tui.store.interrupts import held

with held():
    import duckdb

__all__ = ["duckdb"]

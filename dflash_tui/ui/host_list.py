"""The tree of hosts on the screen: a host, a node or a container a line. What columns say: `host_columns`."""

from typing import Any

from dflash_tui.ui.columns import Cell, Column
from dflash_tui.ui.host_columns import COLUMNS, GPU, REACH, HostRow, gpus, reach
from dflash_tui.ui.listing import Listing


class HostList(Listing[HostRow]):
    COLUMNS = COLUMNS

    def row_id(self, row: HostRow) -> str:
        return row.line.row_id

    def cell(self, column: Column[Any], row: HostRow, width: int) -> Cell:
        if column is REACH:
            return reach(row, width)
        return gpus(row, width) if column is GPU else column.cell(row)

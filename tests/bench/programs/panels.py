"""Reports over the run `r`, warm, in ms: medians of a run that grows by 100 rows between two reports, of one that
stands still, and with nothing kept. Words: a window (`run`, `last N`, `A..B`), then the panels; none means all.
"""

import json
import statistics
import sys
import time

from dflash_tui import paths
from dflash_tui.store.base import StoreOptions
from dflash_tui.store.database import Database
from dflash_tui.store.panel_files import parse

ROUNDS = 11
GROW = """
insert into step_rows select * replace (line_no + 100 as line_no, step + 100 as step, "time" + 212 as "time")
from step_rows where line_no > (select max(line_no) - 100 from step_rows);
update cursors set line_no = line_no + 100, byte_offset = byte_offset + 26200, last_step = last_step + 100;
"""

window = parse("w", paths.bundled("sql"), f"-- window: {sys.argv[1]}\nselect 1").window
names = sys.argv[2:] or None


def report(db: Database) -> float:
    assert window
    begun = time.perf_counter()
    panels = db.report("r", names, window, 120)
    took = (time.perf_counter() - begun) * 1000
    assert all(panel.state != "failed" for panel in panels), [panel.why for panel in panels]
    return took


with Database(paths.database_file(), StoreOptions()) as db:
    found = {"first": report(db), "still": statistics.median(report(db) for _ in range(ROUNDS))}
    grown, anew = [], []
    for _ in range(ROUNDS):
        db._db.execute(GROW)
        grown.append(report(db))
        db._answers.forget("r")
        anew.append(report(db))
    found |= {"grown": statistics.median(grown), "anew": statistics.median(anew)}
print(json.dumps(found))

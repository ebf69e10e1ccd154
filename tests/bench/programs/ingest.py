"""A log into the run `r` of the store; with a second word, its vital signs as well. Prints the peak of memory in MB."""

import json
import resource
import sys
from pathlib import Path

from dflash_tui import paths
from dflash_tui.runs import Window
from dflash_tui.store.base import StoreOptions
from dflash_tui.store.database import Database

paths.private_dir(paths.data_dir())
with Database(paths.database_file(), StoreOptions()) as db:
    db.ingest("r", Path(sys.argv[1]))
    figures = {}
    if len(sys.argv) > 2:
        [panel] = db.report("r", ["vitals"], Window(), 120)
        figures = {f"{metric}.{stat}": value for metric, stat, value, _, _ in panel.rows}
print(json.dumps({"rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "figures": figures}))

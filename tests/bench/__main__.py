"""`make bench`: every bar that can be measured here, side by side with its peer in one run; writes bench.json.

A bar is a ratio to a peer that did the same work in the same minute, or a size in MB or ms. Never a test: it fails on
nothing. Pass names of bars to run only those.
"""

import json
import sys
import tempfile
from pathlib import Path

from tests.bench import bars


def main() -> None:
    wanted = sys.argv[1:]
    rows: list[bars.Row] = []
    with tempfile.TemporaryDirectory(prefix="dflash-bench-") as folder:
        for name, measure in bars.BARS.items():
            if wanted and not any(word in name for word in wanted):
                continue
            found = measure(Path(folder))
            rows += found
            for row in found:
                met = {True: "met", False: "MISSED", None: "-"}[row.met]
                limit = "-" if row.limit is None else f"{row.limit:g}"
                print(f"{row.bar:24} {row.value:10.3f}  limit {limit:>6}  {met:6}  {row.note}", flush=True)
    Path("bench.json").write_text(json.dumps([row.__dict__ for row in rows], indent=1) + "\n")


main()

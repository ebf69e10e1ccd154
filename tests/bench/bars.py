"""The bars: each measures our way and a peer's, interleaved, and gives medians."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.bench.logs import write_log

SQL = "select count(*), avg(loss), max(grad_norm), quantile_cont(tok_per_sec, 0.95) from steps"
ROUNDS = 5
MILLION = 1_000_000


@dataclass
class Row:
    bar: str
    value: float
    limit: float | None
    met: bool | None
    note: str


def row(bar: str, value: float, limit: float | None, note: str) -> Row:
    return Row(bar, round(value, 4), limit, None if limit is None else value <= limit, note)


def _run(program: str, home: Path, *words: str) -> float:
    """Wall seconds of a fresh interpreter, start-up included."""
    env = {**os.environ, "DFLASH_TUI_HOME": str(home)}
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", program, *words], env=env, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def _interleaved(a: Callable[[], float], b: Callable[[], float], rounds: int = ROUNDS) -> tuple[float, float]:
    """Medians of two measurements that take turns, so that a busy minute hits both."""
    pairs = [(a(), b()) for _ in range(rounds)]
    return statistics.median(x for x, _ in pairs), statistics.median(y for _, y in pairs)


_INGEST = """
import resource, sys
from pathlib import Path
from dflash_tui import paths
from dflash_tui.store.base import StoreOptions
from dflash_tui.store.database import Database
paths.private_dir(paths.data_dir())
with Database(paths.database_file(), StoreOptions()) as db:
    db.ingest("r", Path(sys.argv[1]))
Path(sys.argv[2]).write_text(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
"""
_READ_JSON = """
import sys, duckdb
con = duckdb.connect(sys.argv[2])
keys = ["step", "epoch", "loss", "accuracy", "lr", "noise_std", "avg_batch_size", "avg_seq_len", "ddtree_streak8",
        "tok_per_sec", "grad_norm", "padding_eff", "time"]
columns = {key: "DOUBLE" for key in keys}
con.execute("create table steps as select * from read_json($f, format='newline_delimited', columns=$c)",
            {"f": sys.argv[1], "c": columns})
"""
_STORY = """
import json, statistics, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
norms = sorted(r["grad_norm"] for r in rows if r["grad_norm"] > 0)
losses = [r["loss"] for r in rows[-2000:]]
print(statistics.mean(norms), norms[len(norms) // 2], max(norms), statistics.mean(losses))
"""


def ingest(folder: Path) -> list[Row]:
    """1M lines of both shapes into a store, against DuckDB's own typed read_json into a table of its own."""
    rows = []
    for shape in ("story", "trainer"):
        log, memory = write_log(folder / f"{shape}.jsonl", MILLION, shape), folder / "rss"

        def ours(log: Path = log, shape: str = shape, memory: Path = memory) -> float:
            home = folder / f"home-{shape}-{time.monotonic_ns()}"
            return _run(_INGEST, home, str(log), str(memory))

        def theirs(log: Path = log) -> float:
            return _run(_READ_JSON, folder, str(log), str(folder / f"peer-{time.monotonic_ns()}.duckdb"))

        mine, peer = _interleaved(ours, theirs, 3)
        rows.append(row(f"ingest_1m ({shape})", mine / peer, 3.0, f"{mine:.2f} s against read_json {peer:.2f} s"))
        rows.append(row(f"ingest_rss ({shape})", float(memory.read_text()), 500, "MB, peak of the process"))
    story = _run(_STORY, folder, str(folder / "story.jsonl"))
    rows.append(row("story_script_1m", story, None, "s, the story's own way (json.loads + statistics), for comparison"))
    return rows


def _store(folder: Path, steps: int) -> Path:
    home = folder / f"store-{steps}"
    if not home.exists():
        log = write_log(folder / f"story-{steps}.jsonl", steps)
        _run(_INGEST, home, str(log), str(folder / "rss"))
    return home


_PANELS = """
import statistics, sys, time
from dflash_tui import paths
from dflash_tui.runs import Window
from dflash_tui.store.base import StoreOptions
from dflash_tui.store.database import Database
from pathlib import Path
with Database(paths.database_file(), StoreOptions(), read_only=True) as db:
    times = []
    for _ in range(7):
        begun = time.perf_counter()
        assert all(p.state != "failed" for p in db.report("r", None, Window(), 120))
        times.append(time.perf_counter() - begun)
Path(sys.argv[1]).write_text(str(statistics.median(times[1:]) * 1000))
"""


def panels(folder: Path) -> list[Row]:
    """All panels of one run, warm."""
    rows = []
    for steps, limit in ((23_000, None), (MILLION, 150.0)):
        out = folder / "panels"
        _run(_PANELS, _store(folder, steps), str(out))
        rows.append(row(f"panels_{steps}", float(out.read_text()), limit, "ms, all panels, warm, median of 6"))
    return rows


_QUERY = "import sys; from dflash_tui.cli import main; sys.argv[1:] = ['query', sys.argv[1]]; main()"
_BARE = "import sys, duckdb; print(duckdb.connect(sys.argv[2], read_only=True).execute(sys.argv[1]).fetchall())"


def query(folder: Path) -> list[Row]:
    """A whole `dflash-tui query` process over 1M rows, with an owner and without, against bare python + duckdb."""
    home = _store(folder, MILLION)
    copy = folder / "copy.duckdb"
    copy.write_bytes((home / "data" / "dflash.duckdb").read_bytes())

    def ours() -> float:
        return _run(_QUERY, home, SQL)

    def bare() -> float:
        return _run(_BARE, home, SQL, str(copy))

    direct, peer = _interleaved(ours, bare)
    rows = [row("query_direct", direct / peer, 1.5, f"{direct:.3f} s against {peer:.3f} s")]
    env = {**os.environ, "DFLASH_TUI_HOME": str(home)}
    owner = subprocess.Popen([sys.executable, "-m", "dflash_tui", "watch"], env=env, stderr=subprocess.PIPE)
    assert owner.stderr
    owner.stderr.readline()
    try:
        asked, peer = _interleaved(ours, bare)
    finally:
        owner.terminate()
        owner.wait()
    return [*rows, row("query_owner", asked / peer, 0.7, f"{asked:.3f} s against {peer:.3f} s")]


_POLL = """
import json, statistics, sys, time
from pathlib import Path
from dflash_tui import paths
from dflash_tui.runs import Cursor, RunRecord
from dflash_tui.store.base import StoreOptions
from dflash_tui.store.database import Database
from dflash_tui.store.mirror import TRAIN_LOG, Mirror, anchor
paths.private_dir(paths.data_dir())
lines = Path(sys.argv[1]).read_bytes().splitlines(keepends=True)
with Database(paths.database_file(), StoreOptions()) as db:
    runs = [f"poll-{n}" for n in range(20)]
    for run in runs:
        db.register_run(RunRecord(run, run, "train"))
    times = []
    for i in range(30):
        data = b"".join(lines[i * 100 : i * 100 + 100])
        begun = time.perf_counter()
        for run in runs:
            mirror = Mirror(run)
            before = mirror.cursor(TRAIN_LOG)
            mirror.append(TRAIN_LOG, data, Cursor(before.offset + len(data), 1, anchor(data)))
            db.take_in(run)
        times.append(time.perf_counter() - begun)
Path(sys.argv[2]).write_text(str(statistics.median(times[5:]) * 1000))
"""


def poll(folder: Path) -> list[Row]:
    """20 runs x 100 new lines: from bytes that came to committed rows, on a store that holds 1M."""
    out = folder / "poll"
    _run(_POLL, _store(folder, MILLION), str(folder / f"story-{MILLION}.jsonl"), str(out))
    return [row("poll", float(out.read_text()), 25.0, "ms, 20 runs x 100 lines, mirror and commit, median of 25")]


def start(folder: Path) -> list[Row]:
    """What the shell waits for: `--help`, against an interpreter that does nothing."""
    help_program = "import sys; from dflash_tui.cli import main; sys.argv[1:] = ['--help']; main()"
    ours, bare = _interleaved(lambda: _run(help_program, folder), lambda: _run("pass", folder), 9)
    return [row("help", ours / bare, None, f"{ours * 1000:.0f} ms against {bare * 1000:.0f} ms of a bare interpreter")]


BARS: dict[str, Callable[[Path], list[Row]]] = {
    "start": start,
    "ingest": ingest,
    "panels": panels,
    "query": query,
    "poll": poll,
}

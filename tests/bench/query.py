"""A whole `dflash-tui query` over a million rows, with an owner and without, against bare python with duckdb."""

import subprocess
import sys
from pathlib import Path

from tests.bench import peers
from tests.bench.rows import MILLION, SHAPES, Row, environment, medians, wall_s, worst
from tests.bench.stores import copy_of, database_of, store_of

_SQL = "select count(*), avg(loss), max(grad_norm), quantile_cont(tok_per_sec, 0.95) from steps"
_OURS = "import sys; from dflash_tui.cli import main; sys.argv[1:] = ['query', sys.argv[1]]; main()"
_BARE = "import sys, duckdb; print(duckdb.connect(sys.argv[2], read_only=True).execute(sys.argv[1]).fetchall())"
_ROUNDS = 7


def measure(folder: Path) -> list[Row]:
    direct, owner, hsql, notes = {}, {}, {}, {}
    why: peers.NoPeerError | None = None
    for shape in SHAPES:
        home = copy_of(store_of(folder, MILLION, shape), "query")
        # Its own copy: while there is an owner nobody else may open the file.
        copy = database_of(copy_of(home, "bare"))
        ways = {
            "ours": lambda home=home: wall_s([sys.executable, "-c", _OURS, _SQL], home),
            "bare": lambda copy=copy: wall_s([sys.executable, "-c", _BARE, _SQL, copy], folder),
        }
        try:
            found = peers.program("hsql")
            hsql_argv: list[str | Path] = [found, "-r", "--csv", "-c", _SQL, copy]
            ways["hsql"] = lambda argv=hsql_argv: wall_s(argv, folder)
        except peers.NoPeerError as e:
            why = e
        took = medians(ways, _ROUNDS)
        direct[shape] = took["ours"] / took["bare"]
        if "hsql" in took:
            hsql[shape] = took["hsql"] / took["bare"]
        asked = _with_owner(home, ways)
        owner[shape] = asked["ours"] / asked["bare"]
        notes[shape] = (took["ours"], took["bare"], asked["ours"], asked["bare"], took.get("hsql", 0.0))
    story = notes["story"]
    rows = [
        worst("query_direct", direct, 1.5, f"whole process; story {story[0]:.3f} s against {story[1]:.3f} s"),
        worst("query_owner", owner, 0.7, f"whole process; story {story[2]:.3f} s against {story[3]:.3f} s"),
    ]
    if why:
        return [*rows, peers.missing("query: hsql", why)]
    return [*rows, worst("query: hsql", hsql, None, f"whole process, the same SELECT; story {story[4]:.3f} s")]


def _with_owner(home: Path, ways: dict) -> dict[str, float]:
    env = environment(home)
    watch = subprocess.Popen([sys.executable, "-m", "dflash_tui", "watch"], env=env, stderr=subprocess.PIPE)
    assert watch.stderr
    watch.stderr.readline()
    try:
        return medians({name: ways[name] for name in ("ours", "bare")}, _ROUNDS)
    finally:
        watch.terminate()
        watch.wait()

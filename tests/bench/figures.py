"""From a log of a million lines to the figures of `vitals`: ours the first time, and those who read it each time.

No bar: what a person would use instead. The figures of all that have them are compared with ours.
"""

import itertools
import json
import math
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench import peers
from tests.bench.rows import MILLION, SHAPES, Row, ask, medians, worst
from tests.bench.stores import log_of

_ROUNDS = 3
_SQL = """
with r as (from read_json('{log}', format = 'newline_delimited')),
recent as (from r order by step desc limit 2000)
select max(step), avg(grad_norm) filter (grad_norm > 0), quantile_cont(grad_norm, [0.5, 0.95]) filter (grad_norm > 0),
  max(grad_norm), avg(tok_per_sec), stddev_samp(tok_per_sec), arg_min(noise_std, step), arg_max(noise_std, step),
  any_value(l), any_value(p)
from r, (select [avg(loss), quantile_cont(loss, 0.1), quantile_cont(loss, 0.5), quantile_cont(loss, 0.9)] as l,
  avg(padding_eff) as p from recent)
"""
_LNAV = {
    "bench_log": {
        "title": "bench",
        "description": "a training log",
        "json": True,
        "hide-extra": True,
        "file-pattern": ".*jsonl",
        "timestamp-field": "time",
        "line-format": [{"field": "step"}],
        "value": {key: {"kind": "float"} for key in ("step", "loss", "grad_norm", "tok_per_sec")},
    }
}


def measure(folder: Path) -> list[Row]:
    took: dict[str, dict[str, float]] = {}
    ways: dict[str, Callable[[Path, Path], float]] = {
        "dflash-tui": _ours,
        "story script": _script,
        "polars": _polars,
        "hsql": _hsql,
        "lnav": _lnav,
    }
    absent = {}
    for name, peer in (("polars", peers.environment), ("hsql", lambda: peers.program("hsql")), ("lnav", _find_lnav)):
        try:
            peer()
        except peers.NoPeerError as e:
            absent[name] = e
            del ways[name]
    for shape in SHAPES:
        log = log_of(folder, MILLION, shape)
        turns = {name: (lambda way=way, log=log: way(folder, log)) for name, way in ways.items()}
        for name, seconds in medians(turns, _ROUNDS).items():
            took.setdefault(name, {})[shape] = seconds
    notes = {
        "dflash-tui": "s, whole process: taken in for good, then the panel",
        "story script": "s, whole process: json.loads and statistics, each time anew",
        "polars": "s, whole process: scan_ndjson with typed columns",
        "hsql": "s, whole process: one SELECT over read_json",
        "lnav": "s, whole process: count, avg and max only, its SQL has no quantile",
    }
    rows = [worst(f"figures_1m: {name}", found, None, notes[name]) for name, found in took.items()]
    return rows + [peers.missing(f"figures_1m: {name}", why) for name, why in absent.items()]


_right: dict[Path, dict[str, float]] = {}
_tries = itertools.count()


def _ours(folder: Path, log: Path) -> float:
    home = folder / f"figures-{next(_tries)}"
    found = ask("ingest", home, log, "vitals")
    shutil.rmtree(home)
    _right[log] = found["figures"]
    return float(found["wall_s"])


def _script(folder: Path, log: Path) -> float:
    found = ask("story_script", folder, log)
    _compare(log, found["figures"])
    return float(found["wall_s"])


def _polars(folder: Path, log: Path) -> float:
    found = ask("polars_figures", folder, log, python=peers.environment() / "python")
    _compare(log, found["figures"])
    return float(found["wall_s"])


def _compare(log: Path, figures: dict[str, float]) -> None:
    for name, value in figures.items():
        assert math.isclose(value, _right[log][name], rel_tol=1e-8), (name, value, _right[log][name])


def _hsql(folder: Path, log: Path) -> float:
    return _wall_s([peers.program("hsql"), "--csv", "-c", _SQL.format(log=log)], folder)


def _find_lnav() -> None:
    # Not among what pip installs.
    if not shutil.which("lnav"):
        raise peers.NoPeerError("lnav is not on PATH")


def _lnav(folder: Path, log: Path) -> float:
    formats = folder / "lnav" / "lnav" / "formats" / "installed"
    formats.mkdir(parents=True, exist_ok=True)
    (formats / "bench_log.json").write_text(json.dumps(_LNAV))
    sql = ";select count(*), max(step), avg(grad_norm), max(grad_norm), avg(loss), avg(tok_per_sec) from bench_log"
    return _wall_s(["lnav", "-n", "-c", sql, "-c", ":write-csv-to -", log], folder, f"{MILLION},")


def _wall_s(argv: list[str | Path], folder: Path, must_say: str = "") -> float:
    env = {**os.environ, "HOME": str(folder / "lnav"), "XDG_CONFIG_HOME": str(folder / "lnav")}
    begun = time.perf_counter()
    done = subprocess.run(argv, env=env, check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    took = time.perf_counter() - begun
    assert must_say in done.stdout, done.stdout
    return took

"""The public failure cases of asking: another process has the database, `| head`, NaN and large numbers, NaN in panels.

Case 47, what a query may not do, is tests/store/test_guard.py; here it goes through the command as well.
"""

import csv
import io
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from dflash_tui import cli, paths
from dflash_tui.runs import Window
from dflash_tui.store import schema
from dflash_tui.store.access import reader, writer
from dflash_tui.store.panel_files import load_panels
from dflash_tui.store.screens import ask_screen

from ..store.children import child
from .conftest import dflash, refused, wait_until, watching

pytestmark = [pytest.mark.usefixtures("home"), pytest.mark.slow]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "r.jsonl"
    file.write_text("".join(f'{{"step": {step}, "loss": 2.5}}\n' for step in range(1, 10)))
    assert dflash("ingest", str(file)).code == 0
    return file


def test_case45_a_session_answers_and_goes_on_taking_in(log: Path, data: Path) -> None:
    sql = json.loads((data / "cases/case45_lock_holder.expected.json").read_text())["query"]
    with watching() as first:
        assert dflash("query", sql).out.splitlines()[1] == "9"
        with log.open("a") as file:
            file.write('{"step": 10, "loss": 1.0}\n')
        assert dflash("ingest", str(log)).code == 0
        assert dflash("query", sql).out.splitlines()[1] == "10"
        with subprocess.Popen([sys.executable, "-m", "dflash_tui", "watch"], stderr=subprocess.PIPE) as second:
            wait_until(lambda: dflash("query", sql).out.splitlines()[1] == "10")
            first.send_signal(2)
            assert first.wait(20) == 130
            wait_until(lambda: dflash("query", sql, "--stats").err.endswith("answered_by=owner\n"))
            second.send_signal(2)


def test_case45_a_foreign_holder_is_named_within_3_s(log: Path, data: Path) -> None:
    sql = json.loads((data / "cases/case45_lock_holder.expected.json").read_text())["query"]
    # The case's own program makes a table that is a view here; `hold` does no more than hold the file.
    with child("hold", str(paths.database_file())) as holder:
        begun = time.monotonic()
        line = refused(dflash("query", sql), 3)
        # 3 s, and some for a machine that is busy with other tests.
        assert time.monotonic() - begun < 6
        assert f"PID {holder.pid}" in line and str(paths.database_file()) in line
    assert dflash("query", sql).out.splitlines()[1] == "9"


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """The command in this process: a hundred of them take seconds, not a minute."""

    def command(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dflash-tui", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return (int(ended.value.code or 0), *capfd.readouterr())

    return command


@pytest.mark.parametrize("owner", [True, False])
def test_case47_through_the_command(
    log: Path, data: Path, run: Callable[..., tuple[int, str, str]], owner: bool
) -> None:
    case = json.loads((data / "cases/case47_sql_guard.json").read_text())
    before = set(Path("/tmp").iterdir())
    with writer() if owner else nullcontext():
        for sql in case["allowed"]:
            code, out, err = run("query", sql)
            assert (code, err) == (0, "") and out, sql
        for sql in case["denied"]:
            code, out, err = run("query", sql)
            assert (code, out) == (2, "") and len(err.splitlines()) == 1, sql
        assert run("query", "select count(*), sum(loss) from records")[1].splitlines()[1] == "9,22.5"
    new = {file.name for file in set(Path("/tmp").iterdir()) - before}
    assert not new & {"x.csv", "x2.csv", "d", "other.db"}


@pytest.mark.parametrize(("owner", "unbuffered"), [(True, ""), (False, "1"), (False, "")])
@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "md", "table"])
def test_case48_a_reader_that_leaves_is_no_error(log: Path, owner: bool, form: str, unbuffered: str) -> None:
    command = (
        f'"{sys.executable}" -m dflash_tui query --format {form}'
        ' "select r.*, range as n from records r, range(20000) where r.step <= 9" | head -1'
    )
    with watching() if owner else nullcontext():
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=60,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip
    assert done.returncode in (0, 141) and done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


def test_case50_nan_and_big_numbers(log: Path, data: Path) -> None:
    sql = json.loads((data / "cases/case50_json_nan.expected.json").read_text())["query"]
    right = {"a": "NaN", "b": "Infinity", "c": 1.5, "d": None, "e": 9007199254740993, "t": "2026-01-02T03:04:05"}
    with watching():
        assert dflash("query", sql, "--format", "json").json() == [right]
        assert dflash("query", sql, "--format", "jsonl").json() == right
        [row] = csv.DictReader(io.StringIO(dflash("query", sql).out))
    assert row == {"a": "NaN", "b": "Infinity", "c": "1.5", "d": "", "e": "9007199254740993", "t": right["t"]}


NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def every_number(value: Any) -> Iterator[float]:
    """All numbers in the rows of an answer, lists and words of non-finite ones included."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from every_number(item)
    elif isinstance(value, int | float):
        yield value
    elif value in NON_FINITE:
        yield NON_FINITE[value]


def whole_log(folder: Path) -> Path:
    """Case 01's pattern of NaN and infinities in every number that a row may hold."""
    text = re.search(r"create table step_rows \((.*?)\n\);", schema.script(), re.S)
    assert text
    keys = re.findall(r'"?(\w+)"? double\b(?!\[)', text[1])
    rows = []
    for step in range(1, 41):
        value = {3: "NaN", 6: "Infinity", 9: "-Infinity"}.get(step % 12, f"{1 + step / 40}")
        rows.append(f'{{"step": {step}, ' + ", ".join(f'"{key}": {value}' for key in keys) + "}")
        if step % 10 == 0:
            rows.append(f'{{"event": "eval", "step": {step}, "tau_linear_macro": NaN, "lookup_tau_macro": 2.5}}')
    file = folder / "whole.jsonl"
    file.write_text("\n".join(rows) + "\n")
    return file


def test_case51_no_shipped_sql_lets_nan_win(tmp_path: Path, data: Path) -> None:
    right = json.loads((data / "cases/case01_nan_tokens.expected.json").read_text())
    with writer() as store:
        store.ingest("case01", data / "cases/case01_nan_tokens.jsonl")
        store.ingest("whole", whole_log(tmp_path))
    with reader() as store:
        for run_id in ("case01", "whole"):
            for panel in store.report(run_id, None, Window(), 20):
                assert panel.state != "failed", panel.why
                assert all(map(math.isfinite, every_number(panel.rows))), panel.name
                assert not re.search(r"\bnan\b|\binf", str(panel.headline).lower()), panel.name
            for file in (paths.bundled("sql") / "screens").glob("*.sql"):
                asked = set(re.findall(r"\$(\w+)", file.read_text()))
                params = {name: {"run": run_id, "last": 10**9}.get(name, 1) for name in asked}
                assert all(map(math.isfinite, every_number(ask_screen(store, file.stem, params)))), file.stem
        [vitals] = store.report("case01", ["vitals"], Window(), 20)
        figures = {(row[0], row[1]): row for row in vitals.rows}
        for stat in ("mean", "median", "p10", "p90"):
            assert figures["loss", stat][2:4] == [
                pytest.approx(right["loss"][stat], rel=1e-9),
                right["loss"]["n_finite"],
            ]
        for stat in ("mean", "median", "p95", "max"):
            assert figures["grad_norm", stat][2] == pytest.approx(right["grad_norm_gt0"][stat], rel=1e-9)
        # They are left out, and counted: 1 NaN and 1 infinity of the loss, 2 and 1 of the norm.
        assert "2 non-finite" in figures["loss", "mean"][4] and "3 non-finite" in figures["grad_norm", "max"][4]
        assert len(load_panels()) >= 14

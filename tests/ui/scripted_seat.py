"""The one fake of the screens' tests: a seat whose store holds what a test put there, and that notes what was asked."""

import asyncio
import json
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from dflash_tui.config import Addition, Config, HostSpec
from dflash_tui.errors import DflashError, HostError, QueryError, UsageError
from dflash_tui.hosts.containers import Container
from dflash_tui.hosts.journal import Command
from dflash_tui.hosts.person import Person, introduce
from dflash_tui.machines import Look
from dflash_tui.remote.check import Finding
from dflash_tui.remote.launch import Interpreter
from dflash_tui.remote.machine import Overview
from dflash_tui.remote.plan import RUN_ID, LaunchPlan
from dflash_tui.runs import Run, RunRecord, Stretches, Window
from dflash_tui.store import base
from dflash_tui.store.base import Answer, AttemptRow, PanelResult, ResolvedWindow, Row, RunDetail

TITLES = {
    "grad_norm": "gradient norm",
    "lr": "learning rate",
    "length_buckets": "by sequence length",
    "padding": "padding efficiency",
}


def make_run(run_id: str, **changes: Any) -> Run:
    """A run in mid-training on the host gpu2, begun 2h 11m ago and heard of 2 s ago."""
    run = Run(run_id, run_id, "train", "gpu2", "running", None, None, None, 1, 22_698, 69_000, 7860.0, 2.0)
    return replace(run, **changes)


def make_panels(window: Window, buckets: int, num_steps: int = 22_698) -> list[PanelResult]:
    """Panels of the story's shapes, by formula: the same at every call."""
    steps = [num_steps * i // 60 for i in range(61)]

    def fall(step: int) -> float:
        return 0.9 + 1.9 * math.exp(-step / 6000)

    loss = [[s, fall(s) - 0.2, fall(s), fall(s) + 0.9 + 0.2 * math.sin(s / 900)] for s in steps]
    norm = [[s, 0.03, 0.067 * (1 + 0.3 * math.sin(s / 700)), 0.42 if s != steps[30] else 41.5] for s in steps]
    rate = [[s, 6e-4 * min(1.0, s / 2800) * (1 - s / 80_000)] for s in steps]
    speed = [[s, 26_146 + 4 * math.sin(s)] for s in steps]
    band = {"x": "step", "y": "p50", "low": "p10", "high": "p90"}
    names = ["step", "p10", "p50", "p90"]
    vitals = [["step", "last", float(num_steps), 23_000, ""], ["grad_norm", "median", 0.0668, 22_990, "> 0"]]
    vitals += [["loss", "p90", 2.731, 2000, "last 2,000 rows"], ["noise_std", "last", 8e-06, 23_000, ""]]
    lengths = [["short", 0.31, 3.71, 312], ["mid", 0.261, 3.64, 1402], ["long", None, None, 0]]

    def table(name: str, columns: list[str], rows: list[list[Any]], order: int) -> PanelResult:
        return PanelResult(name, TITLES.get(name, name), "table", "rows", columns=columns, rows=rows, order=order)

    def chart(name: str, kind: str, headline: str, rows: list[list[Any]], order: int, **more: Any) -> PanelResult:
        columns, axes = (names, band) if kind == "band" else (["step", "y"], {"x": "step", "y": "y"})
        title = TITLES.get(name, name)
        return PanelResult(
            name, title, kind, "rows", headline=headline, columns=columns, rows=rows, axes=axes, order=order, **more
        )

    return [
        table("vitals", ["metric", "stat", "value", "n", "note"], vitals, 1),
        table("budget", ["figure", "value"], [["eta_s", 54_720.0]], 3),
        PanelResult("acceptance", "acceptance", "line", "empty", why="tau_linear_macro was never logged", order=10),
        chart(
            "loss",
            "band",
            f"p50 0.913 · {window}",
            loss,
            20,
            unit="nats",
            help="The loss. Two humps: two kinds of batches.",
        ),
        chart("grad_norm", "band", "median 0.067 · max 41.5", norm, 50, scale="log"),
        chart("lr", "line", "5.17e-4", rate, 60),
        table("length_buckets", ["bucket", "accuracy", "streak8", "n"], lengths, 80),
        chart("throughput", "line", "26,146 ± 4", speed, 100, unit="tok/s"),
        PanelResult(
            "padding", TITLES["padding"], "line", "failed", why="padding.sql:12: no such column: paddin", order=110
        ),
    ]


def make_more_panels(window: Window, buckets: int, num_steps: int = 22_698) -> list[PanelResult]:
    """The same, and the streak that the story's reference is known for."""
    rows = [[s, 3.63 * (1 - math.exp(-s / 5000))] for s in range(0, num_steps, num_steps // 60)]
    streak = PanelResult("streak", "top-8 streak", "line", "rows", rows=rows, columns=["step", "mean"], unit="slots")
    panels = make_panels(window, buckets, num_steps)
    return [*panels, msgspec.structs.replace(streak, axes={"x": "step", "y": "mean"}, order=40)]


def make_view(**changes: Any) -> Overview:
    """A machine without GPUs that answers in 12 ms."""
    view = Overview(12.0, 0.1, 412 << 30, 128 << 30, 73 << 30, None, "no nvidia-smi here", (), ())
    return replace(view, **changes)


def open_gate() -> threading.Event:
    gate = threading.Event()
    gate.set()
    return gate


def _answer(rows: list[Row]) -> Answer:
    batches: Iterator[list[Row]] = iter([rows])
    names = [f"c{i}" for i in range(len(rows[0]) if rows else 0)]
    return Answer(names, ["VARCHAR"] * len(names), batches, lambda: None)


@dataclass
class ScriptedStore:
    """Answers from lists; `trouble` is raised instead while it is set, a report waits at a closed `gate`."""

    known: list[Run] = field(default_factory=list)
    panels: Callable[[Window, int], list[PanelResult]] = make_panels
    attempts: list[AttemptRow] = field(default_factory=list)
    configs: dict[str, dict[str, Any]] = field(default_factory=dict)
    stretches: Stretches | None = None
    course: list[Row] = field(default_factory=lambda: [(1, 0, 0, 22_698, 5000.0, 53_120.0, None, 1.2e9)])
    checkpoints: list[Row] = field(default_factory=list)
    quality: list[Row] = field(
        default_factory=lambda: [("ddtree_streak8", None, None, True, 3.63), ("position_acc", 1, None, True, 0.46)]
    )
    findings: list[base.Finding] = field(default_factory=list)
    trouble: DflashError | None = None
    gate: threading.Event = field(default_factory=open_gate)
    asked: list[tuple[str, list[str] | None, Window, int]] = field(default_factory=list)
    answer: Any = None
    """What a query gives: (columns, types, rows), or an error."""
    queries: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def runs(self) -> list[Run]:
        self._fail()
        return list(self.known)

    def detail(self, run_id: str) -> RunDetail:
        self._fail()
        for run in self.known:
            if run.run_id == run_id:
                config = self.configs.get(run_id)
                record = RunRecord(run_id, run.name, "train", run.host, f"/work/{run_id}", config=config)
                return RunDetail(run, record, 4121, 0.0, self.attempts)
        raise UsageError(f"no run {run_id}")

    def report(
        self, run_id: str, names: list[str] | None, window: Window, buckets: int, stretches: Stretches | None = None
    ) -> list[PanelResult]:
        self._fail()
        self.asked.append((run_id, names, window, buckets))
        self.stretches = stretches
        self.gate.wait(timeout=10)
        return [panel for panel in self.panels(window, buckets) if names is None or panel.name in names]

    def running_query(self) -> "ScriptedQuery":
        return ScriptedQuery(self)

    def check(self, run_id: str, baseline: str | None = None) -> list[base.Finding]:
        self._fail()
        return list(self.findings)

    def query(self, sql: str, params: dict[str, Any] | None = None, *, timeout_s: float | None = None) -> Answer:
        self._fail()
        if "count(*)" in sql.split("from records")[0]:
            return _answer([(23_000,)])
        if "event = 'checkpoint'" in sql:
            return _answer(self.checkpoints)
        if "event = 'start'" in sql:
            return _answer([(json.dumps({"config": self.configs.get((params or {})["run"], {})}), None)])
        if "max(step) from evals" in sql:
            return _answer([(None,)])
        if "position_acc" in sql:
            return _answer(self.quality if "from evals" in sql else [])
        rows: list[Row] = [(run.run_id, 0.913, 26_146.0, [2.7, 1.9, 1.4, 1.1, None, 0.9]) for run in self.known]
        return _answer(self.course if params and "buckets" in params else rows)

    def window(self, run_id: str, window: Window) -> ResolvedWindow:
        return ResolvedWindow(window.kind, 22_698, 0, 22_698)

    def change(self, run_id: str, **changes: Any) -> Run:
        """Let a run become something else."""
        changed = [replace(run, **changes) if run.run_id == run_id else run for run in self.known]
        self.known = changed
        return next(run for run in changed if run.run_id == run_id)

    def _fail(self) -> None:
        if self.trouble is not None:
            raise self.trouble


class ScriptedQuery:
    """Waits at the store's `gate`; `cancel` lets it through to its end."""

    def __init__(self, store: ScriptedStore) -> None:
        self._store = store
        self._cancelled = threading.Event()

    def start(self, sql: str, params: dict[str, Any] | None, timeout_s: float | None) -> Answer:
        self._store._fail()
        self._store.queries.append((sql, params or {}))
        while not self._store.gate.wait(timeout=0.02):
            if self._cancelled.is_set():
                raise QueryError("the query was cancelled")
        if self._store.answer is None:
            return self._store.query(sql, params)
        if isinstance(self._store.answer, DflashError):
            raise self._store.answer
        columns, types, rows = self._store.answer
        batches: Iterator[list[Row]] = (rows[start : start + 2048] for start in range(0, len(rows), 2048))
        return Answer(columns, types, batches, lambda: None)

    def cancel(self) -> None:
        self._cancelled.set()


class ScriptedSeat:
    """A seat that starts and stops runs in its own store. `gate` holds launch, stop and resume until it is set."""

    def __init__(self, runs: list[Run], advanced: Callable[[str | None], None] = lambda run_id: None) -> None:
        hosts = {name: HostSpec(kind="local" if name == "local" else "ssh", name=name) for name in ("local", "gpu2")}
        self.config = Config(hosts=hosts)
        self.store: Any = ScriptedStore(runs)
        self.notices: list[str] = []
        self.said: list[tuple[str, Any]] = []
        self.person: Person | None = None
        self.looks: dict[str, Look] = {}
        self.findings: list[Finding] = []
        self.told_containers: list[Container] = []
        self.ran: list[Command] = []
        self.collected_by: str | None = None
        self.warnings: list[str] = []
        self.silent_hosts: dict[str, str] = {}
        self.last: Any = None
        self.trouble: DflashError | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_open = False
        self.advanced = advanced

    async def open(self) -> None:
        self._fail()
        introduce(self.person)
        self.is_open = True

    async def close(self) -> None:
        introduce(None)
        self.is_open = False

    async def ask(self, work: Callable[[Any], Any]) -> Any:
        return await asyncio.to_thread(work, self.store)

    def focus(self, run_id: str | None) -> None:
        self.said.append(("focus", run_id))

    def contact(self, host: str) -> str | None:
        return self.silent_hosts.get(host)

    def last_launch(self) -> Any:
        return self.last

    async def launch(self, request: Any, warn: Callable[[str], None]) -> RunRecord:
        for words in self.warnings:
            warn(words)
        self.said.append(("launch", request))
        await self.gate.wait()
        self._fail()
        self.last = request
        name = request.name or request.recipe
        self.store.known.insert(0, make_run(name, host=request.host, step=1, total_steps=600))
        self.advanced(None)
        return RunRecord(name, name, "train", request.host)

    async def plan(self, host: str, training: dict[str, Any]) -> LaunchPlan:
        if host in self.silent_hosts:
            raise HostError(self.silent_hosts[host])
        if training.get("target") == "/gone":
            raise UsageError("local has no /gone")
        python = Interpreter("/opt/venv/bin/python", "3.11.7", {"torch": "2.13.0"})
        file = f"/root/dflash-runs/{RUN_ID}/attempts/1/config.json"
        return LaunchPlan(host, python, [python.executable, "-m", "trainer", file], 212_000, make_view())

    async def clone(self, request: Any, warn: Callable[[str], None]) -> RunRecord:
        self.said.append(("clone", request))
        await self.gate.wait()
        self._fail()
        name = request.name or request.run_id
        self.store.known.insert(0, make_run("cloned", name=name, host=request.host, step=1, total_steps=600))
        self.advanced(None)
        return RunRecord("cloned", name, "train", request.host)

    async def stop(self, run_id: str, *, kill: bool = False) -> Run:
        self.said.append(("kill" if kill else "stop", run_id))
        await self.gate.wait()
        self._fail()
        run: Run = self.store.change(run_id, state="stopped", reason="stopped", code=75)
        self.advanced(run_id)
        return run

    async def resume(self, run_id: str, warn: Callable[[str], None]) -> Run:
        self.said.append(("resume", run_id))
        await self.gate.wait()
        self._fail()
        run: Run = self.store.change(run_id, state="running", reason=None, code=None, attempt=2)
        self.advanced(run_id)
        return run

    async def forget(self, run_id: str) -> None:
        self.said.append(("forget", run_id))
        self._fail()
        self.store.known = [run for run in self.store.known if run.run_id != run_id]
        self.advanced(None)

    async def reload(self) -> None:
        pass

    async def look(self, host: HostSpec) -> Look:
        """As scripted in `looks`; any other host answers."""
        return self.looks.get(host.name) or Look(host, "reachable", make_view(), None)

    async def check(self, host: HostSpec) -> list[Finding]:
        self.said.append(("check", host.name))
        await self.gate.wait()
        self._fail()
        return self.findings

    async def containers(self, host: HostSpec) -> list[Container]:
        return self.told_containers

    async def add(self, addition: Addition) -> None:
        self.said.append(("add", addition.text))
        self.config = Config(hosts={**self.config.hosts, addition.spec.name: addition.spec})

    def commands(self) -> list[Command]:
        return self.ran

    def collector(self) -> str | None:
        return self.collected_by

    def _fail(self) -> None:
        if self.trouble is not None:
            raise self.trouble

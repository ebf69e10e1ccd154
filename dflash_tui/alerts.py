"""New warnings of runs that are followed: each is told once, and given to a command of the person's.

Owns what is new and at what pace the checks are asked; how a session tells it, by a bell or a line, is its own affair.
What was told is kept beside the run's mirror by whoever owns the store, so that no other session tells it again.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from dflash_tui.config import AlertsSpec
from dflash_tui.errors import DflashError
from dflash_tui.runs import Run, RunState
from dflash_tui.store.base import Finding, Store
from dflash_tui.store.mirror import Mirror

# Checks of a run of a million rows take a second and more: they get a twentieth of the time at most.
GAP_S = 10.0
BUSY_SHARE = 1 / 20
# A log that stands still brings no news, and that is what one of the checks is about.
IDLE_S = 60.0
COMMAND_S = 20.0

Ask = Callable[[Callable[[Store], Any]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Alert:
    """A warning, or what is critical, that was not there before."""

    run: Run
    finding: Finding


class Alerts:
    """`told` is called on the loop with each new warning, `failed` with a sentence on a command that did not work."""

    def __init__(
        self, spec: AlertsSpec, ask: Ask, told: Callable[[Alert], None], failed: Callable[[str], None]
    ) -> None:
        self._spec = spec
        self._ask = ask
        self._told = told
        self._failed = failed
        self._known: dict[str, set[str]] = {}
        self._followed: set[str] = set()
        self._changed: set[str] = set()
        self._news = asyncio.Event()

    def mark(self, run_id: str) -> None:
        """Rows or the state of a run that is followed changed."""
        self._followed.add(run_id)
        self._changed.add(run_id)
        self._news.set()

    async def run(self, is_owner: Callable[[], bool]) -> None:
        """Until cancelled. The owner keeps what was told, and runs the command."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(IDLE_S):
                    await self._news.wait()
            self._news.clear()
            changed, self._changed = self._changed or set(self._followed), set()
            began = time.monotonic()
            for run_id in sorted(changed):
                # One that went away meanwhile, a store that is busy: they are asked again with the next news.
                with suppress(DflashError):
                    await self._judge(run_id, is_owner())
            await asyncio.sleep(max(GAP_S, (time.monotonic() - began) / BUSY_SHARE))

    async def _judge(self, run_id: str, is_owner: bool) -> None:
        run, findings = await self._ask(lambda store: (store.detail(run_id).run, store.check(run_id)))
        if RunState(run.state).is_over or run.state == RunState.ABSENT:
            self._followed.discard(run_id)
        mirror = Mirror(run_id)
        kept = set(mirror.alerts())
        known = self._known.setdefault(run_id, set(kept))
        for finding in findings:
            name, alert = _name(finding), Alert(run, finding)
            if finding.severity == "info":
                continue
            if name not in known:
                known.add(name)
                self._told(alert)
            if is_owner and name not in kept:
                # First: a command that fails is not run for ever.
                await asyncio.to_thread(mirror.append_alert, name)
                if self._spec.command:
                    await self._command(alert)

    async def _command(self, alert: Alert) -> None:
        argv = self._spec.command
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as e:
            self._failed(f"alerts.command: {argv[0]}: {e.strerror}")
            return
        try:
            async with asyncio.timeout(COMMAND_S):
                await process.communicate(as_json(alert))
        except TimeoutError:
            self._failed(f"alerts.command: {argv[0]} took longer than {COMMAND_S:.0f} s and was ended")
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode and process.returncode > 0:
            self._failed(f"alerts.command: {argv[0]} ended with {process.returncode}")


def as_json(alert: Alert) -> bytes:
    """What a command reads: the run, and the finding as `check --json` has it."""
    run, one = alert.run, alert.finding
    tree = {"run_id": run.run_id, "name": run.name, "host": run.host, "state": run.state, "step": run.step}
    finding = {key: getattr(one, key) for key in ("check", "severity", "sentence", "steps", "values", "next")}
    return msgspec.json.encode(tree | finding) + b"\n"


def _name(finding: Finding) -> str:
    """What makes it the same finding although its numbers move."""
    return " ".join(filter(None, (finding.check, finding.severity, str(finding.values.get("metric") or ""))))

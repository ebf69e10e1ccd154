"""New warnings of runs that are followed: each is told once, and given to a command of the person's.

Owns what is new and at what pace the checks are asked; how a session tells it, by a bell or a line, is its own affair.
What was told is kept beside the run's mirror by whoever owns the store, so that no other session tells it again.
"""

import asyncio
import os
import signal
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
from dflash_tui.text import visible
from dflash_tui.threads import in_thread

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
        self.spec = spec
        self._ask = ask
        self._told = told
        self._failed = failed
        self._known: dict[str, set[str]] = {}
        self._followed: set[str] = set()
        self._changed: set[str] = set()
        self._said: set[str] = set()
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
        kept = await self._kept(mirror)
        known = self._known.setdefault(run_id, set(kept))
        for finding in findings:
            name, alert = _name(finding), Alert(run, finding)
            if finding.severity == "info":
                continue
            if name not in known:
                known.add(name)
                self._told(alert)
            # First it is kept: a command that fails is not run for ever.
            if is_owner and name not in kept and await self._keep(mirror, name) and self.spec.command:
                await self._command(alert)

    async def _kept(self, mirror: Mirror) -> set[str]:
        try:
            return set(await in_thread(lambda: list(mirror.alerts())))
        except OSError as e:
            self._fail_once(f"{e.filename}: cannot be read ({e.strerror}); what was told there is told again")
            return set()

    async def _keep(self, mirror: Mirror, name: str) -> bool:
        try:
            await in_thread(lambda: mirror.append_alert(name))
        except DflashError as e:
            self._fail_once(f"{e}; alerts.command is not called without")
            return False
        return True

    def _fail_once(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self._failed(sentence)

    async def _command(self, alert: Alert) -> None:
        argv = self.spec.command
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError) as e:
            # A word with a NUL in it is a ValueError.
            self._failed(f"alerts.command: {visible(argv[0])}: {(isinstance(e, OSError) and e.strerror) or e}")
            return
        try:
            async with asyncio.timeout(COMMAND_S):
                await process.communicate(as_json(alert))
        except TimeoutError:
            self._failed(f"alerts.command: {visible(argv[0])} took longer than {COMMAND_S:.0f} s and was ended")
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    # What it started as well: a shell's child would go on.
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if process.returncode and process.returncode > 0:
            self._failed(f"alerts.command: {visible(argv[0])} ended with {process.returncode}")


def as_json(alert: Alert) -> bytes:
    """What a command reads: the run, and the finding as `check --json` has it."""
    run, one = alert.run, alert.finding
    tree = {"run_id": run.run_id, "name": run.name, "host": run.host, "state": run.state, "step": run.step}
    finding = {key: getattr(one, key) for key in ("check", "severity", "sentence", "steps", "values", "next")}
    return msgspec.json.encode(tree | finding) + b"\n"


def _name(finding: Finding) -> str:
    """What makes it the same finding although its numbers move."""
    return " ".join(filter(None, (finding.check, finding.severity, str(finding.values.get("metric") or ""))))

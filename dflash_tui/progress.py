"""A run followed without a screen: a line now and then, until it is over. For pipes, CI logs and `--follow`."""

import asyncio
from collections.abc import Callable
from functools import partial

from dflash_tui.runs import Run, RunState
from dflash_tui.store.base import Store
from dflash_tui.store.screens import ask_screen
from dflash_tui.store.tail import last_words
from dflash_tui.text import duration, number
from dflash_tui.watch import Session

EVERY_S = 5.0
_LOOK_S = 0.5


async def follow(session: Session, run_id: str, tell: Callable[[str], None]) -> Run:
    """Tell how a run goes, at most every 5 s, until it is over; returns how it ended."""
    session.focus(run_id)
    told, waited_s = "", EVERY_S
    while True:
        run = (await session.ask(lambda store: store.detail(run_id))).run
        # An absent run is one whose folder is gone from its host: nothing will come.
        is_over = RunState(run.state).is_over or run.state == RunState.ABSENT
        if is_over or waited_s >= EVERY_S:
            waited_s = 0.0
            line = await session.ask(partial(describe, run=run))
            if line != told:
                tell(line)
                told = line
        if is_over:
            return run
        await asyncio.sleep(_LOOK_S)
        waited_s += _LOOK_S


def describe(store: Store, run: Run) -> str:
    """How a run goes, in one line; before its first step, what its trainer said last."""
    [row] = ask_screen(store, "progress", {"run": run.run_id})
    step, loss, accuracy, rate, eval_step, tau, lookup_tau, lossless = row
    words = [f"{run.name}: {run.state}" + (f" ({run.reason})" if run.reason else "")]
    if step is None and (said := last_words(run.run_id)):
        words.append(said)
    if step is not None:
        words.append(f"step {number(step)}" + (f" of {number(run.total_steps)}" if run.total_steps else ""))
        words += [f"loss {number(loss)}", f"accuracy {number(accuracy)}"]
        if rate and run.total_steps and not RunState(run.state).is_over:
            words.append(f"{duration((run.total_steps - step) / rate)} left")
    if tau is not None:
        words.append(f"tau {number(tau)} at step {number(eval_step)} (prompt lookup {number(lookup_tau)})")
        words.append(f"lossless {number(lossless)}")
    return " · ".join(words)

"""How long a host that cannot be reached is left alone: by what it was that it said."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dflash_tui.collect import BACKOFF_MAX_S, HostCollector
from dflash_tui.config import HostSpec
from dflash_tui.errors import AuthFailedError, DflashError, HostKeyChangedError, LinkLostError, UnreachableError

from ..remote.far_side import until


@pytest.mark.parametrize(
    ("error", "is_left_alone"),
    [
        (UnreachableError("no answer"), False),
        (LinkLostError("gone"), False),
        (AuthFailedError("no key fits"), True),
        (HostKeyChangedError("another key"), True),
    ],
)
async def test_who_was_refused_does_not_knock_on(error: DflashError, is_left_alone: bool) -> None:
    tries = 0

    def refuse() -> HostSpec:
        nonlocal tries
        tries += 1
        raise error

    collector = HostCollector(refuse, cast(Any, None), cast(Any, None), lambda run_id: None)
    collector.follow([cast(Any, SimpleNamespace(run_id="r-1", state="running"))], None)
    task = asyncio.create_task(collector.collect())
    await until(lambda: collector.silence, "a silence")
    assert collector.silence
    wait_s = collector.silence.next_try - time.monotonic()
    assert (wait_s > 2 * BACKOFF_MAX_S) == is_left_alone
    collector.hurry(None)
    await until(lambda: tries == 2, "a person's refresh is a try at once")
    task.cancel()
    await asyncio.wait({task})

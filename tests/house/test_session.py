"""A session's seat at the store: who owns, who takes over, and what a collector's trouble does."""

import asyncio
import errno
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from dflash_tui import collect, copies, requests
from dflash_tui.collect import Silence
from dflash_tui.runs import Cursor, RunEvent, RunRecord
from dflash_tui.store.client import StoreClient
from dflash_tui.watch import Session
from tests.cli.conftest import watching
from tests.seat import seated


async def until(what: Callable[[], Awaitable[bool]] | Callable[[], bool], timeout_s: float = 60) -> None:
    async with asyncio.timeout(timeout_s):
        while True:
            found = what()
            if found is True or (not isinstance(found, bool) and await found):
                return
            await asyncio.sleep(0.02)


def register(session: Session, run_id: str, host: str = "local") -> None:
    """A run that the store believes to run, and whose host knows nothing of it."""
    session.store.register_run(RunRecord(run_id, run_id, "train", host=host, created=1.0))
    session.store.event(run_id, RunEvent(1.0, "state", "running", attempt=1))


async def state(session: Session, run_id: str) -> str:
    return (await session.ask(lambda store: store.detail(run_id))).run.state


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
async def test_the_second_session_is_a_client_and_takes_over(ending: signal.Signals) -> None:
    with watching() as first:
        async with seated() as second:
            assert not second.is_owner and isinstance(second.store, StoreClient)
            asked = [asyncio.create_task(second.ask(lambda store: store.runs())) for _ in range(5)]
            first.send_signal(ending)
            assert await asyncio.gather(*asked) == [[]] * 5
            await until(lambda: second.is_owner)
            assert await second.ask(lambda store: store.runs()) == []
            await asyncio.to_thread(first.wait, 20)


async def test_a_run_that_its_host_does_not_know_is_absent() -> None:
    async with seated() as session:
        register(session, "gone")
        await session.refresh()
        await until(lambda: _is(session, "gone", "absent"))


async def _is(session: Session, run_id: str, wanted: str) -> bool:
    return await state(session, run_id) == wanted


async def test_a_collector_that_fails_says_so_and_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    real, left = copies.read_cursors, [2]

    def failing(run_id: str) -> dict[str, Cursor]:
        if left[0]:
            left[0] -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return real(run_id)

    monkeypatch.setattr(copies, "read_cursors", failing)
    monkeypatch.setattr("dflash_tui.watch._REGROUP_S", 0.05)
    monkeypatch.setattr(collect.HostCollector, "fail", lambda self, error: told.append(str(error)))
    async with seated() as session:
        register(session, "r")
        await session.refresh()
        await until(lambda: _is(session, "r", "absent"))
    assert len(told) == 2 and "Too many open files" in told[0]


async def test_a_host_that_left_the_config_is_silent_and_holds_up_no_other() -> None:
    async with seated() as session:
        register(session, "lost", host="gpu9")
        register(session, "here")
        await session.refresh()
        await until(lambda: _is(session, "here", "absent"))
        await until(lambda: session.contact("gpu9") is not None)
        assert "no host named 'gpu9'" in (session.contact("gpu9") or "")
        assert await state(session, "lost") == "running"


async def test_a_run_on_screen_does_not_shorten_the_wait_for_a_silent_host(monkeypatch: pytest.MonkeyPatch) -> None:
    # So long that it is not over by itself, however slow the machine is.
    monkeypatch.setattr("random.uniform", lambda least, most: 60.0)
    async with seated() as session:
        register(session, "lost", host="gpu9")
        await session.refresh()
        await until(lambda: session.contact("gpu9") is not None)
        silence = None
        # A new run and the refresh may have it asked twice, one right behind the other.
        while silence is not session._collectors["gpu9"].silence:
            silence = session._collectors["gpu9"].silence
            await asyncio.sleep(0.3)
        for _ in range(20):
            session.store.refresh("lost")
            await asyncio.sleep(0.005)
        assert isinstance(silence, Silence) and session._collectors["gpu9"].silence is silence
        await session.refresh()
        await until(lambda: session._collectors["gpu9"].silence is not silence)


async def test_what_is_changed_in_the_config_holds_in_a_session_that_runs(home: Path) -> None:
    file = home / "config" / "config.toml"
    file.parent.mkdir(parents=True)
    told: list[str] = []
    async with seated() as session:
        session.alerted = lambda said: told.append(said) if isinstance(said, str) else None
        session.store.register_run(RunRecord("one", "one", "train", created=1.0))

        async def complaints() -> list[str]:
            found = await session.ask(lambda store: store.check("one"))
            return [one.sentence for one in found if "config.toml" in one.sentence]

        async def changed(text: str, is_seen: Callable[[], Awaitable[bool]]) -> None:
            file.write_text(text)
            session.focus("one")
            await until(is_seen)

        async def complains() -> bool:
            return [sentence for sentence in await complaints() if "unknown key checks.spikse" in sentence] != []

        async def is_told() -> bool:
            return bool(told)

        async def is_content() -> bool:
            return await complaints() == []

        assert await is_content()
        await changed("[checks.spikse]\nfactor = 1\n[stop]\ngrace_s = 7\n", complains)
        assert session.config.stop.grace_s == 7
        await changed("[checks", is_told)
        assert await complains() and len(told) == 1 and "config.toml: not readable as TOML" in told[0]
        await changed("[stop]\ngrace_s = 8\n", is_content)
        assert session.config.stop.grace_s == 8


async def test_closing_leaves_no_lock_and_no_socket(home: Path) -> None:
    async with seated():
        pass
    assert not list((home / "data" / "run").glob("*.sock"))
    async with seated() as again:
        assert again.is_owner


def test_what_was_launched_last_is_remembered_and_a_place_that_takes_nothing_is_no_error(home: Path) -> None:
    request = requests.LaunchRequest("tiny", "local", "mine", ("lr=1e-3",))
    requests.remember(request)
    assert requests.last_launch() is None
    (home / "data").mkdir(parents=True)
    requests.remember(request)
    assert requests.last_launch() == request

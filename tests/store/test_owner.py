"""One owner, and everybody else asks: who wins, who takes over, who is told what."""

import asyncio
import concurrent.futures
import os
import socket
import stat
import time
from pathlib import Path

import pytest

from dflash_tui import paths
from dflash_tui.errors import QueryError, StoreBusyError, TimedOutError, UsageError
from dflash_tui.runs import RunRecord
from dflash_tui.store import conversation, exchange, frames
from dflash_tui.store.access import reader, writer
from dflash_tui.store.base import IngestProgress, StoreOptions
from dflash_tui.store.client import OwnerGoneError, StoreClient, has_owner
from dflash_tui.store.database import Database
from dflash_tui.store.owner import Owner, owner_gone, take_ownership

from .children import child, stopped
from .conftest import rows_of

ENDLESS = "select count(*) from range(100000000) a, range(100000) b"


async def become_owner() -> Owner:
    ours = take_ownership(lambda sentence: None, StoreOptions())
    assert ours
    return ours


async def running(ours: Owner, number: int) -> None:
    async with asyncio.timeout(30):
        while ours.database.num_running != number:  # noqa: ASYNC110 - other threads change it
            await asyncio.sleep(0.01)


def test_without_a_store_a_reader_is_told_what_makes_one() -> None:
    with pytest.raises(UsageError, match="there is no store yet: `dflash-tui demo`, `launch` or `ingest` makes one"):
        reader()


def test_a_writer_is_owner_and_the_next_one_asks_it() -> None:
    with writer() as first:
        assert isinstance(first, Database)
        with writer() as second, reader() as third:
            assert isinstance(second, StoreClient)
            assert isinstance(third, StoreClient)
            second.register_run(RunRecord("r", "r", "train"))
            assert [run.run_id for run in third.runs()] == ["r"]
    assert not has_owner()
    with reader() as direct:
        assert isinstance(direct, Database)
        assert [run.run_id for run in direct.runs()] == ["r"]


def test_two_readers_at_once_without_an_owner() -> None:
    with writer():
        pass
    with reader() as one, reader() as two:
        assert rows_of(one, "select 1") == rows_of(two, "select 1")


def test_the_socket_is_for_us_alone() -> None:
    with writer():
        place = paths.socket_file()
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(paths.lock_file().stat().st_mode) == 0o600
        assert paths.lock_file().read_text().startswith(f"{os.getpid()} ")
    assert not place.exists()


def test_only_one_of_many_becomes_owner() -> None:
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: take_ownership(lambda sentence: None, StoreOptions()), range(8)))
    [ours] = filter(None, found)
    asyncio.run(_leave(ours))
    again = take_ownership(lambda sentence: None, StoreOptions())
    assert again
    asyncio.run(_leave(again))


async def _leave(ours: Owner) -> None:
    async with ours:
        pass


def test_a_dead_owners_socket_is_in_nobodys_way() -> None:
    with child("own") as process:
        assert has_owner()
        process.kill()
        process.wait()
    assert paths.socket_file().exists()
    assert not has_owner()
    with reader() as store:
        assert isinstance(store, Database)
    with writer() as store:
        assert isinstance(store, Database)
        assert has_owner()


def test_a_waiting_session_takes_over_from_a_killed_owner() -> None:
    with child("own") as ours, child("wait") as session:
        ours.kill()
        assert session.stdout
        assert session.stdout.readline() == "owner\n"
        with writer() as store:
            assert isinstance(store, StoreClient)
            store.register_run(RunRecord("r", "r", "train"))
            assert [run.run_id for run in store.runs()] == ["r"]


async def test_a_waiting_session_learns_of_an_orderly_leave() -> None:
    ours = await become_owner()
    async with ours:
        assert take_ownership(lambda sentence: None, StoreOptions()) is None
        waiting = asyncio.ensure_future(owner_gone())
        await asyncio.sleep(0.1)
        assert not waiting.done()
    await asyncio.wait_for(waiting, 5)
    await asyncio.wait_for(owner_gone(), 5)


async def test_a_client_cancels_its_query_before_and_amid_the_answer() -> None:
    async with await become_owner() as ours:
        for sql in (ENDLESS, "select range from range(100000000)"):
            query = StoreClient().running_query()

            def ask(query: exchange.OwnerQuery = query, sql: str = sql) -> None:
                query.start(sql, None, None).rows()

            asking = asyncio.ensure_future(asyncio.to_thread(ask))
            await running(ours, 1)
            query.cancel()
            with pytest.raises(QueryError, match="the query was cancelled"):
                await asking
            await running(ours, 0)
        early = StoreClient().running_query()
        early.cancel()
        with pytest.raises(QueryError, match="the query was cancelled"):
            await asyncio.to_thread(early.start, "select 1", None, None)


async def test_a_clients_death_cancels_its_query() -> None:
    async with await become_owner() as ours:
        with child("ask", ENDLESS) as process:
            await running(ours, 1)
            process.kill()
            process.wait()
            await running(ours, 0)


async def test_many_dead_clients_leave_no_thread_busy() -> None:
    async with await become_owner() as ours:
        exchanges = [await asyncio.to_thread(exchange.Exchange, frames.Query(ENDLESS, {}, None)) for _ in range(20)]
        await running(ours, 20)
        for held in exchanges:
            held.close()
        await running(ours, 0)
        assert await asyncio.to_thread(rows_of, StoreClient(), "select 1") == [(1,)]


async def test_leaving_does_not_wait_for_a_query() -> None:
    ours = await become_owner()
    async with ours:
        asking = asyncio.ensure_future(asyncio.to_thread(lambda: rows_of(StoreClient(), ENDLESS)))
        await running(ours, 1)
        begun = time.monotonic()
    assert time.monotonic() - begun < 5
    with pytest.raises((OwnerGoneError, QueryError)):
        await asking


async def test_a_slow_client_holds_up_nobody() -> None:
    async with await become_owner():
        slow = await asyncio.to_thread(lambda: StoreClient().query("select repeat('x', 1000) from range(1000000)"))
        batches = slow.batches()
        await asyncio.to_thread(next, batches)
        # The owner may not run ahead of a client that does not read: it waits with a few batches made.
        others = await asyncio.gather(*(asyncio.to_thread(rows_of, StoreClient(), "select 42") for _ in range(30)))
        assert others == [[(42,)]] * 30
        slow.close()


async def test_many_clients_at_once_get_their_own_rows() -> None:
    async with await become_owner():
        queries = [f"select range * {n} from range(5000)" for n in range(12)]
        answers = await asyncio.gather(*(asyncio.to_thread(rows_of, StoreClient(), sql) for sql in queries))
    assert answers == [[(row * n,) for row in range(5000)] for n in range(12)]


async def test_refresh_reaches_the_collector() -> None:
    async with await become_owner() as ours:
        told: list[str | None] = []
        ours.database.on_refresh = told.append
        await asyncio.to_thread(StoreClient().refresh, "r")
        await asyncio.to_thread(StoreClient().refresh, None)
    assert told == ["r", None]


@pytest.mark.parametrize(
    "request_line",
    [
        b"\n",
        b"{}\n",
        b"[]\n",
        b"\xff\n",
        b'{"op": "nonsense"}\n',
        b'{"op": "query"}\n',
        b'{"op": "query", "sql": 1, "params": {}, "timeout_s": null}\n',
        b'{"op": "window", "run_id": "r", "window": 7}\n',
        b'{"op": "detail", "run": "r"}\n',
        b'{"op": "detail", "run_id": "r"}\n',
    ],
)
def test_a_strange_request_is_answered_and_survived(request_line: bytes) -> None:
    with writer() as store:
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.settimeout(5)
            stranger.connect(str(paths.socket_file()))
            stranger.sendall(request_line)
            assert b"problem" in stranger.makefile("rb").read()
        assert rows_of(StoreClient(), "select 1") == [(1,)]
        assert store.runs() == []


def test_an_owner_that_stopped_answering_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "HELLO_S", 0.5)
    monkeypatch.setattr(exchange, "SILENT_S", 1.5)
    with child("own") as process:
        answer = rf"PID {process.pid} \(children.py own\), does not answer"
        with stopped(process), pytest.raises(StoreBusyError, match=answer):
            reader().runs()
        assert rows_of(StoreClient(), "select 1") == [(1,)]


def test_a_working_owner_is_not_taken_for_a_silent_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "ALIVE_EVERY_S", 0.1)
    monkeypatch.setattr(exchange, "SILENT_S", 0.6)
    with writer(), pytest.raises(TimedOutError), StoreClient().query(ENDLESS, timeout_s=1.5) as answer:
        answer.rows()
    assert frames.ALIVE_EVERY_S < frames.SILENT_S / 2


def test_an_owner_that_stops_in_the_middle_of_its_work_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "SILENT_S", 1.5)
    with child("own") as process, concurrent.futures.ThreadPoolExecutor(1) as thread:
        asking = thread.submit(rows_of, StoreClient(), ENDLESS)
        time.sleep(0.3)
        with stopped(process), pytest.raises(StoreBusyError, match=rf"PID {process.pid} .*does not answer"):
            asking.result()


def test_case45_a_foreign_holder_is_named_within_three_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    with writer():
        pass
    with child("hold", str(paths.database_file())) as process:
        begun = time.monotonic()
        with pytest.raises(StoreBusyError, match=rf"dflash\.duckdb: is held by PID {process.pid}"):
            reader()
        assert time.monotonic() - begun < 3.9
        monkeypatch.setattr("dflash_tui.store.opening.BUSY_AFTER_S", 0.3)
        with pytest.raises(StoreBusyError, match=rf"dflash\.duckdb: is held by PID {process.pid}"), writer():
            pass
    with writer() as store:
        assert isinstance(store, Database)


def test_case45_a_query_while_a_session_has_the_database_open() -> None:
    with child("own"):
        with reader() as store:
            assert rows_of(store, "select count(*) from records") == [(0,)]
        with reader() as store:
            store.register_run(RunRecord("r", "r", "train"))
            assert [run.run_id for run in store.runs()] == ["r"]


def test_a_lock_whose_holder_does_not_serve_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dflash_tui.store.access.BUSY_AFTER_S", 0.3)
    ours = take_ownership(lambda sentence: None, StoreOptions())
    assert ours
    with pytest.raises(StoreBusyError, match=rf"held by PID {os.getpid()} \(.*\), which does not answer"), writer():
        pass
    asyncio.run(_leave(ours))


def test_progress_travels_before_the_answer(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.0}\n')
    told: list[IngestProgress] = []
    with writer(), writer() as asking:
        assert isinstance(asking, StoreClient)
        assert asking.ingest("r", log, progress=told.append).rows == 2
    assert told[-1] == IngestProgress(2, log.stat().st_size, log.stat().st_size)
    assert told == sorted(told, key=lambda p: (p.bytes_total, p.bytes_done, p.rows))


def test_an_ingest_whose_client_left_ends_and_goes_on_later(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.0}\n')

    def leave(progress: IngestProgress) -> None:
        raise KeyboardInterrupt

    with writer() as ours, writer() as asking:
        with pytest.raises(KeyboardInterrupt):
            asking.ingest("r", log, progress=leave)
        asking.ingest("r", log)
        assert rows_of(ours, "select step from steps where run = 'r' order by 1") == [(1,), (2,)]

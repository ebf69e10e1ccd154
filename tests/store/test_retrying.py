"""Owners come and go while others ask: whoever only asks, or writes what may be written twice, does not notice."""

import asyncio
import concurrent.futures
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dflash_tui import paths
from dflash_tui.errors import StoreBusyError, UsageError
from dflash_tui.runs import RunEvent, RunRecord
from dflash_tui.store import frames, wire
from dflash_tui.store.access import reader, writer
from dflash_tui.store.asking import answered
from dflash_tui.store.base import StoreOptions
from dflash_tui.store.client import OwnerGoneError, StoreClient, has_owner
from dflash_tui.store.lock import StoreLock
from dflash_tui.store.mirror import Mirror
from dflash_tui.store.owner import take_ownership
from dflash_tui.store.queries import BATCH_ROWS

from .children import child
from .conftest import rows_of

pytestmark = pytest.mark.slow


@contextmanager
def dying_owner(
    answer: Callable[[wire.AnyRequest], bytes] = lambda request: b"\n", num_unheard: int = 0
) -> Iterator[None]:
    """An owner that is gone as soon as it was asked something and has sent `answer`; first, some calls are cut off."""
    place = paths.socket_file()
    paths.private_dir(place.parent)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place))
    listener.listen()

    def serve() -> None:
        asked = b""
        for _ in range(num_unheard):
            listener.accept()[0].close()
        # Those who only look whether somebody is there send nothing.
        while not asked:
            connection, _ = listener.accept()
            with connection:
                asked = connection.makefile("rb").readline()
                if asked:
                    listener.close()
                    place.unlink()
                    connection.sendall(answer(wire.decode_request(asked)))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture
def one_run() -> None:
    with writer() as store:
        store.register_run(RunRecord("r", "r", "train"))


@pytest.mark.usefixtures("one_run")
def test_a_reader_is_answered_by_the_file_when_the_owner_left_unanswered() -> None:
    with dying_owner(), reader() as store:
        assert [run.run_id for run in store.runs()] == ["r"]
        assert rows_of(store, "select run from runs") == [("r",)]
    with dying_owner(), reader() as store:
        assert rows_of(store, "select run from runs") == [("r",)]
        assert store.detail("r").run.name == "r"
    assert not has_owner()
    with writer():
        pass


@pytest.mark.usefixtures("one_run")
def test_an_owner_that_takes_its_time_to_leave_is_waited_for() -> None:
    """It still takes calls, and hears none of them. Each try is two: whether somebody is there, and what is asked."""
    with dying_owner(num_unheard=12), reader() as store:
        assert [run.run_id for run in store.runs()] == ["r"]


@pytest.mark.usefixtures("one_run")
def test_a_reader_is_answered_by_the_next_owner() -> None:
    with dying_owner():
        store = reader()
        with child("own") as process:
            assert [run.run_id for run in store.runs()] == ["r"]
            assert process.poll() is None


@pytest.mark.usefixtures("one_run")
def test_rows_that_were_handed_on_are_not_asked_for_again() -> None:
    def first_rows(request: wire.AnyRequest) -> bytes:
        head = frames.frame(frames.pack(frames.QueryHead(["n"], ["BIGINT"])), has_more=True)
        return head + frames.frame(frames.pack([(n,) for n in range(BATCH_ROWS)]), has_more=True)

    with dying_owner(first_rows), reader() as store, store.query("select range n from range(10000)") as answer:
        batches = answer.batches()
        assert next(batches)[-1] == (BATCH_ROWS - 1,)
        with pytest.raises(OwnerGoneError, match="went away"):
            next(batches)


@pytest.mark.usefixtures("one_run")
def test_an_error_of_the_next_owner_is_told_as_it_is() -> None:
    with dying_owner(), reader() as store, pytest.raises(UsageError, match="no run 'x'"):
        store.detail("x")


@pytest.mark.usefixtures("one_run")
def test_a_writer_becomes_owner_when_its_owner_left() -> None:
    with dying_owner(), writer() as store:
        store.register_run(RunRecord("s", "s", "train"))
        assert has_owner()
        assert {run.run_id for run in store.runs()} == {"r", "s"}
    assert not has_owner()


@pytest.mark.usefixtures("one_run")
@pytest.mark.parametrize("is_noted", [False, True])
def test_an_event_is_noted_once_whether_or_not_the_owner_got_to_it(is_noted: bool) -> None:
    def note(request: wire.AnyRequest) -> bytes:
        assert isinstance(request, wire.Event)
        if is_noted:
            Mirror(request.run_id).append_event(request.event)
        return b"\n"

    event = RunEvent(1234.5678901, "state", "running", attempt=1, pid=7)
    with dying_owner(note), writer() as store:
        store.event("r", event)
        assert rows_of(store, "select time, state, pid from events") == [(1234.5678901, "running", 7)]
    assert list(Mirror("r").events()) == [event]


def test_readers_do_not_notice_owners_that_come_and_go() -> None:
    with writer() as store:
        store.register_run(RunRecord("r", "r", "train"))
    with child("visit", "25") as process:
        num_asked = 0
        while process.poll() is None:
            with reader() as store:
                assert rows_of(store, "select count(*) from runs where run = 'r'") == [(1,)]
                assert "r" in {run.run_id for run in store.runs()}
            num_asked += 1
        assert process.returncode == 0
    assert num_asked > 1


def test_a_writer_gets_its_turn_though_readers_never_stop() -> None:
    with writer() as store:
        store.register_run(RunRecord("r", "r", "train"))
    with child("read"), child("read"), child("read"), child("visit", "5") as visitor:
        assert visitor.wait(60) == 0


@pytest.fixture
def long_log(tmp_path: Path) -> Path:
    """What is taken in again for a second or two when the database is gone."""
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f'{{"step": {step}, "loss": {step}.5}}\n' for step in range(300_000)))
    with writer() as store:
        store.ingest("long", log)
    paths.database_file().unlink()
    return log


@pytest.mark.usefixtures("long_log")
def test_who_asks_while_the_database_is_made_anew_waits_for_it() -> None:
    with child("reopen", "stay") as process:
        while not has_owner():
            time.sleep(0.01)
        with reader() as store, writer() as other:
            assert isinstance(other, StoreClient)
            assert rows_of(store, "select count(*) from steps") == [(300_000,)]
            assert [run.run_id for run in other.runs()] == ["long"]
        assert process.poll() is None


@pytest.mark.usefixtures("long_log")
def test_an_owner_interrupted_while_it_makes_the_database_leaves_at_once_and_whole() -> None:
    with child("reopen") as process:
        while not has_owner():
            time.sleep(0.01)
        asking = concurrent.futures.ThreadPoolExecutor(1).submit(
            lambda: rows_of(reader(), "select count(*) from steps")
        )
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        process.wait(20)
        # Whoever waited for it has now made the database itself.
        assert asking.result(30) == [(300_000,)]
    with writer() as store:
        assert rows_of(store, "select count(*), count(distinct line_no) from steps") == [(300_000, 300_000)]


@pytest.mark.usefixtures("long_log")
async def test_a_session_that_is_left_while_it_makes_the_database_gives_the_store_up() -> None:
    ours = take_ownership(lambda sentence: None, StoreOptions())
    assert ours
    opening = asyncio.ensure_future(ours.__aenter__())
    while not await asyncio.to_thread(has_owner):  # noqa: ASYNC110 - a thread makes it so
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    opening.cancel()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    with StoreLock.held():
        assert [file.name for file in paths.data_dir().glob("dflash*")] == []


@pytest.mark.usefixtures("one_run")
def test_one_who_reads_for_long_keeps_writers_out_and_no_readers() -> None:
    with child("read_long") as process, concurrent.futures.ThreadPoolExecutor(1) as thread:

        def write() -> None:
            with writer():
                pass

        writing = thread.submit(write)
        while not has_owner():
            time.sleep(0.01)
        with reader() as store:
            assert [run.run_id for run in store.runs()] == ["r"]
        with answered("select run from runs", {}, None, lambda sentence: None, StoreOptions) as (answer, by):
            assert (answer.rows(), by) == ([("r",)], "direct")
        with pytest.raises(StoreBusyError, match=f"held by PID {process.pid} "):
            writing.result()

"""Owners come and go while others ask: whoever only asks, or writes what may be written twice, does not notice."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from dflash_tui import paths
from dflash_tui.errors import UsageError
from dflash_tui.runs import RunEvent, RunRecord
from dflash_tui.store import frames, wire
from dflash_tui.store.access import reader, writer
from dflash_tui.store.client import OwnerGoneError, has_owner
from dflash_tui.store.mirror import Mirror
from dflash_tui.store.queries import BATCH_ROWS

from .children import child
from .conftest import rows_of


@contextmanager
def dying_owner(answer: Callable[[wire.AnyRequest], bytes] = lambda request: b"\n") -> Iterator[None]:
    """An owner that is gone as soon as it was asked something and has sent `answer`."""
    place = paths.socket_file()
    paths.private_dir(place.parent)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place))
    listener.listen()

    def serve() -> None:
        asked = b""
        # Those who only look whether somebody is there send nothing.
        while not asked:
            connection, _ = listener.accept()
            with connection:
                asked = connection.makefile("rb").readline()
                if asked:
                    listener.close()
                    place.unlink()
                    connection.sendall(answer(wire.decode_request(asked)))

    thread = threading.Thread(target=serve)
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

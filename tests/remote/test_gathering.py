"""What many hosts bring goes into the tables in few rounds; who is on screen waits for none, and no trouble spreads."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dflash_tui import gathering, paths
from dflash_tui.copies import Copies, read_cursors
from dflash_tui.errors import DflashError
from dflash_tui.gathering import Gathering
from dflash_tui.remote.follow import Chunk, Heard
from dflash_tui.runs import Cursor, RunRecord
from dflash_tui.store.database import Database
from dflash_tui.store.mirror import TRAIN_LOG, Mirror, anchor

LINE = b'{"step": 1, "loss": 2.0}\n'
RUNS = [f"r-{n}" for n in range(8)]


@pytest.fixture
def database(home: Path) -> Iterator[Database]:
    paths.private_dir(paths.data_dir())
    with Database(paths.database_file()) as database:
        for run_id in RUNS:
            database.register_run(RunRecord(run_id, run_id, "train", host="box"))
        yield database


class Rounds:
    """The rounds that a database was asked for."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[list[str]] = []
        real = database.take_in_all

        def note(run_ids: list[str], *words: Any) -> Any:
            self.seen.append(list(run_ids))
            return real(run_ids, *words)

        monkeypatch.setattr(database, "take_in_all", note)


def grow(run_id: str, data: bytes = LINE) -> None:
    mirror = Mirror(run_id)
    before = mirror.size(TRAIN_LOG)
    mirror.append(TRAIN_LOG, data, Cursor(before + len(data), 7, anchor(data)))


def rows(database: Database) -> dict[str, int]:
    with database.query("select run, count(*) from records group by run") as answer:
        return {str(run): int(number) for run, number in answer.rows()}


async def test_who_comes_while_the_tables_rest_is_taken_in_together(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "REST", 1e9)
    monkeypatch.setattr(gathering, "MAX_REST_S", 0.5)
    rounds, one = Rounds(database, monkeypatch), Gathering(database)
    for run_id in RUNS:
        grow(run_id)
    await one.take_in(RUNS[:1], [], is_urgent=False)
    later = [asyncio.create_task(one.take_in([run_id], [run_id], is_urgent=False)) for run_id in RUNS[1:]]
    assert await asyncio.gather(*later) == [{}] * 7
    assert rounds.seen == [RUNS[:1], RUNS[1:]]
    assert rows(database) == dict.fromkeys(RUNS, 1)
    with database.query("select run from runs where contact is not null order by run") as answer:
        assert [run for (run,) in answer.rows()] == RUNS[1:]


async def test_who_is_on_screen_waits_for_no_rest_and_takes_the_others_along(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "REST", 1e9)
    monkeypatch.setattr(gathering, "MAX_REST_S", 3600.0)
    rounds, one = Rounds(database, monkeypatch), Gathering(database)
    await one.take_in(RUNS[:1], [], is_urgent=False)
    patient = asyncio.create_task(one.take_in(RUNS[1:3], [], is_urgent=False))
    await asyncio.sleep(0)
    assert await one.take_in(RUNS[3:4], [], is_urgent=True) == {} == await patient
    assert rounds.seen == [RUNS[:1], RUNS[1:4]]
    # One that is left when all ends is taken in too.
    grow(RUNS[5])
    last = asyncio.create_task(one.take_in(RUNS[5:6], [], is_urgent=False))
    await asyncio.sleep(0)
    last.cancel()
    await one.close()
    assert rows(database) == {RUNS[5]: 1}


async def test_the_trouble_of_one_run_is_no_others(database: Database) -> None:
    one = Gathering(database)
    for run_id in RUNS:
        grow(run_id)
    database.forget(RUNS[2])
    # Two hosts, in one round: each hears of its own runs.
    asked = [asyncio.create_task(one.take_in(runs, [], is_urgent=False)) for runs in (RUNS[:4], RUNS[4:])]
    troubles, none = await asyncio.gather(*asked)
    assert list(troubles) == [RUNS[2]] and "no run" in troubles[RUNS[2]] and none == {}
    assert rows(database) == {run_id: 1 for run_id in RUNS if run_id != RUNS[2]}


async def test_a_round_that_fails_fails_for_all_in_it_and_not_for_the_next(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Gathering(database)

    def full(run_ids: list[str], at: float) -> None:
        raise DflashError("the disk is full")

    monkeypatch.setattr(database, "contact", full)
    both = [asyncio.create_task(one.take_in([], [run_id], is_urgent=False)) for run_id in RUNS[:2]]
    for failed in await asyncio.gather(*both, return_exceptions=True):
        assert str(failed) == "the disk is full"
    monkeypatch.undo()
    assert await one.take_in([], RUNS[:2], is_urgent=True) == {}


async def test_the_end_waits_for_a_round_that_is_under_way(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    one, begun, may_end, real = Gathering(database), threading.Event(), threading.Event(), database.take_in_all

    def slow(run_ids: list[str]) -> Any:
        begun.set()
        assert may_end.wait(20)
        return real(run_ids)

    monkeypatch.setattr(database, "take_in_all", slow)
    grow(RUNS[0])
    asking = asyncio.create_task(one.take_in(RUNS[:1], [], is_urgent=True))
    await asyncio.to_thread(begun.wait)
    closing = asyncio.create_task(one.close())
    asking.cancel()
    await asyncio.wait({asking})
    assert not closing.done()
    may_end.set()
    await closing
    assert rows(database) == {RUNS[0]: 1}


def heard(data: bytes, offset: int, reset: str | None = None) -> Heard:
    chunk = Chunk(TRAIN_LOG, data, Cursor(offset, 7, anchor(data)), reset)
    return Heard(None, [chunk], has_more=False)  # type: ignore[arg-type]


def test_how_far_a_run_was_read_is_remembered_as_the_disk_has_it(home: Path) -> None:
    copies = Copies()
    Mirror("r-0").write_record(RunRecord("r-0", "r-0", "train"))
    assert not copies.know(["r-0"]) and copies.cursors(["r-0"]) == {"r-0": {TRAIN_LOG: Cursor()}}
    assert copies.keep("r-0", heard(LINE, 25)) and copies.keep("r-0", heard(LINE, 50))
    assert copies.know(["r-0"])
    assert copies.cursors(["r-0"])["r-0"][TRAIN_LOG] == Cursor(50, 7, anchor(LINE))
    assert copies.cursors(["r-0"])["r-0"][TRAIN_LOG].offset == read_cursors("r-0")[TRAIN_LOG].offset
    # Another file of that name: the disk is asked.
    assert copies.keep("r-0", heard(b"x", 1, "rewritten"))
    assert not copies.know(["r-0"]) and copies.cursors(["r-0"])["r-0"][TRAIN_LOG].offset == 1
    copies.limit_to(["r-1"])
    assert not copies.know(["r-0"])


def test_bytes_that_fit_nowhere_are_not_kept_and_the_disk_is_asked(home: Path) -> None:
    """A run that was forgotten, and came again, while its host was asked."""
    copies = Copies()
    copies.cursors(["r-0"])
    copies.keep("r-0", heard(LINE, 25))
    Mirror("r-0").remove()
    assert not copies.keep("r-0", heard(LINE, 50))
    assert copies.cursors(["r-0"]) == {"r-0": {TRAIN_LOG: Cursor()}}
    assert copies.keep("r-0", heard(LINE, 25))

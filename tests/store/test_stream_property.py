"""A stream of lines, cut anywhere and at any moments, with truncations, rotations, restarts and losses in between: the
tables hold what a plain reader of the same bytes finds, once each."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dflash_tui.runs import RunRecord
from dflash_tui.store.base import StoreOptions
from dflash_tui.store.database import Database
from dflash_tui.store.lock import StoreLock
from dflash_tui.store.mirror import TRAIN_LOG, Mirror
from dflash_tui.store.opening import open_for_writing

from .conftest import grow, rows_of
from .plain_reader import read
from .test_intake_property import check_rows, log_lines

pytestmark = pytest.mark.slow

SLOW = settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
RUNS = ("a", "b")


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A new home for each example."""

    def fresh() -> Iterator[Path]:
        number = 0
        while True:
            number += 1
            home = tmp_path / f"home-{number}"
            monkeypatch.setenv("DFLASH_TUI_HOME", str(home))
            yield home

    return fresh()


@contextmanager
def opened() -> Iterator[Database]:
    with StoreLock.held():
        database = open_for_writing(lambda sentence: None, StoreOptions())
        try:
            yield database
        finally:
            database.close()


class Feed:
    """A far file and how much of it is in the mirror: what a collector does, and what the bytes of each generation
    come to."""

    def __init__(self, run_id: str, stream: bytes) -> None:
        self.run_id = run_id
        self.left = stream
        self.generations = [b""]

    def append(self, num_bytes: int) -> None:
        data, self.left = self.left[:num_bytes], self.left[num_bytes:]
        if data:
            grow(self.run_id, data)
            self.generations[-1] += data

    def start_generation(self, reason: str) -> None:
        Mirror(self.run_id).start_generation(TRAIN_LOG, reason)
        if self.generations[-1]:
            self.generations.append(b"")

    def lose(self, num_bytes: int) -> None:
        """What the disk had not kept when the machine lost power; a collector asks for it again."""
        kept = self.generations[-1]
        cut = max(0, len(kept) - num_bytes)
        if kept:
            Mirror(self.run_id).path(TRAIN_LOG).write_bytes(kept[:cut])
        self.generations[-1], self.left = kept[:cut], kept[cut:] + self.left

    def check(self, store: Database) -> None:
        for number, data in enumerate(self.generations, start=1):
            # The last line of a generation that is over has its end there.
            is_over = number < len(self.generations)
            right, refused = read(data + b"\n" * (is_over and not data.endswith(b"\n")))
            check_rows(store, self.run_id, right, number)
            found = rows_of(
                store,
                "select line_no from rejects where run = $run and generation = $number order by 1",
                run=self.run_id,
                number=number,
            )
            assert [line_no for (line_no,) in found] == refused


which = st.sampled_from(RUNS)
happenings = st.lists(
    st.one_of(
        st.tuples(st.just("append"), which, st.integers(1, 400)),
        st.tuples(st.just("append"), which, st.integers(1, 400)),
        st.tuples(st.just("take in"), which, st.just(0)),
        st.tuples(st.just("take both in"), which, st.just(0)),
        st.tuples(st.just("new generation"), which, st.just(0)),
        st.tuples(st.just("reopen"), which, st.just(0)),
        st.tuples(st.just("lose and reopen"), which, st.integers(0, 300)),
    ),
    max_size=14,
)


@SLOW
@given(streams=st.tuples(log_lines, log_lines), tail=st.binary(max_size=4), happens=happenings)
def test_the_tables_hold_what_a_plain_reader_finds_in_the_mirrors(
    homes: Iterator[Path], streams: tuple[bytes, bytes], tail: bytes, happens: list[tuple[str, str, int]]
) -> None:
    next(homes)
    feeds = {run_id: Feed(run_id, stream + tail) for run_id, stream in zip(RUNS, streams, strict=True)}
    todo = [*happens, *(("append", run_id, 10**9) for run_id in RUNS), ("take both in", RUNS[0], 0)]
    while todo:
        with opened() as store:
            for run_id in RUNS:
                store.register_run(RunRecord(run_id, run_id, "train", "box"))
            while todo:
                what, run_id, number = todo.pop(0)
                match what:
                    case "append":
                        feeds[run_id].append(number)
                    case "new generation":
                        feeds[run_id].start_generation("rotated")
                    case "take in":
                        store.take_in(run_id)
                    case "take both in":
                        store.take_in_all(RUNS)
                if "reopen" in what:
                    break
            else:
                for feed in feeds.values():
                    feed.check(store)
        if what == "lose and reopen":
            feeds[run_id].lose(number)


class Known:
    """What a plain reader of the same file makes of it when it looks at the same moments: contents that it has read,
    each as far as it grew. Lines are told apart by what they say, so how often each was read can be counted."""

    def __init__(self) -> None:
        self.contents: list[bytes] = []
        self.open: int | None = None
        self.fragments: list[bytes] = []

    def look(self, content: bytes) -> None:
        """A file that goes on is read on; one that is only a beginning of what was read brings nothing; any other is
        a log begun anew."""
        if not content:
            return
        known = [
            (min(len(content), len(before)), number)
            for number, before in enumerate(self.contents)
            if content[: len(before)] == before[: len(content)]
        ]
        number = max(known)[1] if known else len(self.contents)
        if number == len(self.contents):
            self.contents.append(b"")
        elif len(content) <= len(self.contents[number]):
            return
        if self.open not in (None, number):
            # The last line of what was read before never gets its end where it stands.
            assert self.open is not None
            self.fragments.append(self.contents[self.open].rpartition(b"\n")[2])
        self.open = number
        self.contents[number] = content

    def read(self) -> tuple[Counter[int], int]:
        """How often each record was read, by its number, and how many lines were refused."""
        found: Counter[int] = Counter()
        num_refused = 0
        for data in [*self.contents, *(fragment + b"\n" for fragment in self.fragments)]:
            right, refused = read(data)
            found.update(row["step"] for row in right)
            num_refused += len(refused)
        return found, num_refused


moves = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 200)),
        st.tuples(st.just("write"), st.integers(1, 200)),
        st.tuples(st.just("ingest"), st.just(0)),
        st.tuples(st.just("ingest"), st.just(0)),
        st.tuples(st.just("rotate"), st.just(0)),
        st.tuples(st.just("empty"), st.just(0)),
        st.tuples(st.just("truncate"), st.integers(1, 120)),
        st.tuples(st.just("reopen"), st.just(0)),
    ),
    max_size=25,
)


@SLOW
@given(moves=moves, is_padded=st.booleans())
# The line that goes on after its cut end was lost: two objects on one line.
@example(moves=[("write", 172), ("truncate", 1), ("write", 13)], is_padded=False)
def test_a_log_that_is_cut_truncated_and_rotated_between_ingests(
    homes: Iterator[Path], moves: list[tuple[str, int]], is_padded: bool
) -> None:
    home = next(homes)
    home.mkdir()
    log, known = home / "log.jsonl", Known()
    # No two lines are the same, however often the log begins anew.
    stream = b"".join(b'{"step": %d%s}\n' % (n, b', "x": "%d"' % n * (is_padded and n % 3 == 0)) for n in range(400))
    todo = [*moves, ("ingest", 0)]
    while todo:
        with opened() as store:
            while todo:
                what, number = todo.pop(0)
                content = log.read_bytes() if log.exists() else b""
                match what:
                    case "write":
                        log.write_bytes(content + stream[:number])
                        stream = stream[number:]
                    case "ingest" if content:
                        store.ingest("r", log, shape="jsonl")
                        known.look(content)
                    case "rotate" if content:
                        log.rename(home / "log.jsonl.1")
                    case "empty":
                        log.write_bytes(b"")
                    case "truncate":
                        log.write_bytes(content[: max(0, len(content) - number)])
                    case "reopen":
                        break
            else:
                found = dict(rows_of(store, "select step, count(*) from records group by step"))
                [(num_refused,)] = rows_of(store, "select count(*) from rejects")
                assert (found, num_refused) == known.read()

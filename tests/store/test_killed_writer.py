"""kill -9 of the owner at random moments of an intake: no row lost, none doubled."""

import random

import pytest

from dflash_tui.store.access import writer
from dflash_tui.store.mirror import TRAIN_LOG, Mirror

from .children import child
from .conftest import rows_of


@pytest.mark.parametrize(("batch", "seed"), [("1", 1), ("40", 2), ("400", 3), ("4000", 4)])
def test_a_killed_owner_loses_and_doubles_nothing(batch: str, seed: int) -> None:
    rng = random.Random(seed)
    acknowledged = 0
    with child("write", f"run-{batch}", batch) as process:
        assert process.stdout
        for _ in range(rng.randrange(2, 12)):
            acknowledged = int(process.stdout.readline())
        # A fraction of a batch later, mostly in the middle of the next one.
        with pytest.raises(Exception, match="timed out"):
            process.wait(rng.random() * 0.03)
        process.kill()
        process.wait()
    copy = Mirror(f"run-{batch}").path(TRAIN_LOG).read_bytes()
    num_lines = copy.count(b"\n")
    assert num_lines >= acknowledged
    with writer() as store:
        counted = rows_of(
            store, "select count(*), count(distinct step), max(step), max(line_no), min(loss - step) from steps"
        )
        assert counted == [(num_lines, num_lines, num_lines - 1, num_lines, 0.5)]
        assert rows_of(store, "select byte_offset, line_no from cursors") == [(copy.rfind(b"\n") + 1, num_lines + 1)]
        [run] = store.runs()
        assert (run.name, run.host, run.step) == (f"run-{batch}", "box", num_lines - 1)

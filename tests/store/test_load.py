"""The short form of load_store.py: clients, two sessions and rows that arrive, all at once."""

import signal
from pathlib import Path

import pytest

from .load_store import Load

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nobody_sees_half_a_batch_or_an_error_while_the_owner_changes(tmp_path: Path, how: int) -> None:
    load = Load(tmp_path, seconds=3.0)
    load.run(num_clients=4, rate=2000, how=how)
    assert load.violations == []
    assert len(load.latencies_s) >= 4
    assert sum(load.acknowledged.values()) > 0

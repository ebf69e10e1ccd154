"""What an answer through the owner loads: that it is quick is a promise."""

import subprocess
import sys

import pytest

from .children import child

HEAVY = ("duckdb", "asyncio", "textual", "asyncssh", "torch", "numpy", "typer", "platformdirs")
REPORT = f"import sys; print([name for name in {HEAVY!r} if name in sys.modules])"


def loaded(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", f"{code}\n{REPORT}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_one_query_loads_only_what_it_needs() -> None:
    """The rest of the store costs a third of such a query's time."""
    with child("own"):
        ask = (
            "with answered('select 1', {}, None, print, None) as (answer, by):\n"
            "    assert (answer.rows(), by) == ([(1,)], 'owner')\n"
            "import sys; ours = {name for name in sys.modules if name.startswith('dflash_tui.store.')}\n"
            "print(sorted(name.rpartition('.')[2] for name in ours))"
        )
        assert loaded(f"from dflash_tui.store.asking import answered\n{ask}").splitlines() == [
            "['answer', 'asking', 'exchange', 'frames']",
            "[]",
        ]


def test_a_query_without_an_owner_loads_no_more_than_the_database() -> None:
    with child("own"):
        pass
    ask = (
        "with answered('select 1', {}, None, print, None) as (answer, by):\n"
        "    assert (answer.rows(), by) == ([(1,)], 'direct')"
    )
    assert loaded(f"from dflash_tui.store.asking import answered\n{ask}") == "['duckdb']"
    more = ("panels", "intake", "base", "access")
    ours = f"import sys; print([m for m in {more} if 'dflash_tui.store.' + m in sys.modules])"
    assert loaded(f"from dflash_tui.store.asking import answered\n{ask}\n{ours}").startswith("[]")


def test_a_query_that_the_owner_answers_loads_nothing_heavy() -> None:
    with child("own"):
        ask = "with reader() as store, store.query('select 1') as answer: assert answer.rows() == [(1,)]"
        assert loaded(f"from dflash_tui.store.access import reader\n{ask}") == "[]"


@pytest.mark.parametrize("module", ["base", "client", "wire", "access", "mirror", "lines", "keys", "find", "lock"])
def test_these_modules_load_nothing_heavy(module: str) -> None:
    assert loaded(f"import dflash_tui.store.{module}") == "[]"


def test_the_store_loads_no_screen_and_no_host() -> None:
    assert loaded("import dflash_tui.store.owner, dflash_tui.store.database") == "['duckdb', 'asyncio']"

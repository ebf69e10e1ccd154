"""The filter's language: what each form lets through, that a mistake is told in a line, that no text breaks it."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_tui.errors import UsageError
from dflash_tui.ui.run_columns import Figures, RunRow
from dflash_tui.ui.run_filter import NUMBERS, TEXTS, parse

from .scripted_seat import make_run


def row(
    run_id: str, loss: float | None = None, speed: float | None = None, since_s: float = 0.0, **more: Any
) -> RunRow:
    return RunRow(make_run(run_id, **more), Figures(loss, speed), since_s)


ROWS = [
    row("v5-hard", 0.913, 26_146.0, age_s=7200.0),
    row("v5-g10", 1.2, step=3104, host="pve1", age_s=245.0),
    row("v4-kl07", 1.6, host="pve10", no_contact_s=41.0),
    row("v3", float("nan"), state="failed", reason="oom-gpu", age_s=273_600.0, attempt=3),
    row("golden", None, host=None, kind="ingested", state="absent", step=None, total_steps=None, age_s=None),
]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("", "v5-hard v5-g10 v4-kl07 v3 golden"),
        ("V5", "v5-hard v5-g10"),
        ("oom", "v3"),
        ("host:pve", "v5-g10 v4-kl07"),
        ("host:pve1", "v5-g10 v4-kl07"),
        ("host=pve1", "v5-g10"),
        ("host~1", "v5-g10 v4-kl07"),
        ("state:running loss<1.5", "v5-hard v5-g10"),
        ("state:fail,absent", "v3 golden"),
        ("kind:train name~g", "v5-g10"),
        ("!state:running", "v3 golden"),
        ("!!v3", "v3"),
        ("loss>=1.2", "v5-g10 v4-kl07"),
        ("!loss>=1.2", "v5-hard v3 golden"),
        ("step<5k", "v5-g10"),
        ("step=3104", "v5-g10"),
        ("speed>26k", "v5-hard"),
        ("done>30%", "v5-hard v4-kl07 v3"),
        ("age>1h age<1d", "v5-hard v4-kl07"),
        ("silent>40s", "v4-kl07"),
        ("attempt>1", "v3"),
        # Still being typed.
        ("loss<", "v5-hard v5-g10 v4-kl07 v3 golden"),
        ("!host:", "v5-hard v5-g10 v4-kl07 v3 golden"),
    ],
)
def test_a_filter_lets_through(words: str, found: str) -> None:
    test = parse(words)
    assert [row.run.name for row in ROWS if test(row)] == found.split()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("hots:pve1", "no field 'hots': did you mean 'host'?"),
        ("v5 lss<1", "no field 'lss': did you mean 'loss'?"),
        ("loss<abc", "loss<abc: 'abc' is no number here: write 1.5, 20k"),
        ("age<2w", "age<2w: '2w' is no number here: write 90m, 2h, 3d"),
        ("name<3", "name is text: write name:3, name~3 or name=3"),
        ("loss~1", "loss is a number: write loss<1, loss>1 or loss=1"),
    ],
)
def test_a_mistake_is_a_line_that_says_what_to_write(words: str, said: str) -> None:
    with pytest.raises(UsageError) as told:
        parse(words)
    assert str(told.value) == said


_PIECES = st.sampled_from([*TEXTS, *NUMBERS, *"!:~=<>,.%- km19e+", "<=", ">=", "running", "1.5", "1e999"])


@settings(max_examples=60)
@given(st.text() | st.lists(_PIECES).map("".join))
def test_no_text_breaks_it(words: str) -> None:
    with suppress(UsageError):
        test = parse(words)
        for one in ROWS:
            assert test(one) in (True, False)

"""Which figures of two runs stand side by side, and which differences of what they were made with."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dflash_tui import references
from dflash_tui.comparison import WHOLE, Comparison, compare
from dflash_tui.output.comparison import write_comparison
from dflash_tui.references import Reference
from dflash_tui.runs import Window
from dflash_tui.store.database import Database

Take = Callable[..., None]
Compare = Callable[..., Comparison]
Pair = tuple[float | None, float | None]

CONFIG = {"lr": 6e-4, "gamma": 10}


@pytest.fixture
def take(database: Database, tmp_path: Path) -> Take:
    """Takes in a log of train rows at `steps`, a start event before them and other rows behind."""

    def take(run: str, steps: range, *more: dict[str, Any], start: dict[str, Any] | None = None) -> None:
        first = {"event": "start", "time": 1.0, **({"config": CONFIG} if start is None else start)}
        rows = [first, *({"step": step, "loss": 1.0} for step in steps), *more]
        log = tmp_path / f"{run}.jsonl"
        log.write_text("".join(json.dumps(row) + "\n" for row in rows))
        database.ingest(run, log)

    return take


@pytest.fixture
def compared(database: Database) -> Compare:
    def compared(a: str, b: str | None = None, window: Window = WHOLE) -> Comparison:
        return compare(database, database.find(a)[0], database.find(b)[0] if b else None, window)

    return compared


def evaluation(step: int, name: str | None = None, **figures: Any) -> dict[str, Any]:
    return {"event": "eval", "step": step, **figures, **({"name": name} if name else {})}


def figures(found: Comparison, *metrics: str) -> dict[tuple[str, str], Pair]:
    return {(one.metric, one.stat): (one.a, one.b) for one in found.metrics if one.metric in metrics}


def differences(found: Comparison) -> dict[str, tuple[Any, Any]]:
    return {one.key: (one.a, one.b) for one in found.config}


def words(found: Comparison, *references: Reference) -> str:
    out = io.StringIO()
    write_comparison(found, references, out)
    return out.getvalue()


def test_figures_of_different_sets_never_stand_beside_each_other(take: Take, compared: Compare) -> None:
    """Several sets of prompts are evaluated one after the other, and which comes last is an accident."""
    gsm8k, math = [
        evaluation(10, name, tau_linear_macro=tau, position_acc=[tau / 10])
        for name, tau in (("GSM8K", 3.0), ("MATH", 5.0))
    ]
    take("one", range(1, 11), gsm8k, math)
    take("two", range(1, 11), math, gsm8k)
    take("three", range(1, 11), gsm8k)
    named = [evaluation(9, "last", tau_linear_macro=1.0), evaluation(10, tau_linear_macro=2.0)]
    take("four", range(1, 11), *named, math)

    found = compared("one", "two")
    assert figures(found, "tau_linear_macro", "position_acc") == {
        ("tau_linear_macro", "MATH"): (5.0, 5.0),
        ("tau_linear_macro", "GSM8K"): (3.0, 3.0),
    }
    [note] = found.notes
    assert note.startswith("the newest evaluations are of different sets (one MATH, two GSM8K)")
    assert note in words(found)
    assert figures(compared("one", "three"), "tau_linear_macro") == {
        ("tau_linear_macro", "MATH"): (5.0, None),
        ("tau_linear_macro", "GSM8K"): (3.0, 3.0),
    }
    # One that is called as we call the newest is another; so is one without a name.
    assert figures(compared("one", "four"), "tau_linear_macro", "position_acc") == {
        ("tau_linear_macro", "last"): (5.0, 5.0),
        ("tau_linear_macro", "GSM8K"): (3.0, None),
        ("tau_linear_macro", '"last"'): (None, 1.0),
        ("tau_linear_macro", "unnamed"): (None, 2.0),
        ("position_acc", "1"): (0.5, 0.5),
    }


def test_an_evaluation_behind_the_last_train_row_counts(take: Take, compared: Compare) -> None:
    take("one", range(10, 100, 10), *(evaluation(step, tau_linear_macro=step) for step in (50, 95)))
    take("two", range(10, 200, 10), *(evaluation(step, tau_linear_macro=step) for step in (50, 95, 150)))
    found = compared("one", "two")
    assert figures(found, "tau_linear_macro") == {("tau_linear_macro", "last"): (95.0, 95.0)}
    assert found.notes == ()
    assert figures(compared("one", "two", Window.between(10, 90)), "tau_linear_macro") == {
        ("tau_linear_macro", "last"): (50.0, 50.0)
    }


def test_a_log_of_evaluations_is_held_against_a_reference(take: Take, compared: Compare) -> None:
    take("one", range(0), evaluation(5, "GSM8K", tau_linear_macro=3.27))
    found, paper = compared("one"), references.load("paper")
    assert {held.stat: held.a for held in found.held_against(paper)}["GSM8K"] == 3.27
    assert (found.window, found.why, found.notes) == (None, "one has no steps", ())
    assert "3.27" in words(found, paper)
    # Nor need it have steps.
    take("two", range(0), {"event": "eval", "tau_linear_macro": 4.0})
    assert figures(compared("two"), "tau_linear_macro") == {("tau_linear_macro", "last"): (4.0, None)}
    take("none", range(0))
    assert compared("none").notes == ("none has no evaluation",)
    assert compared("one", "two").why == "no step in common: one has no steps, two has no steps"


def test_steps_between_those_of_the_other_are_none_in_common(take: Take, compared: Compare) -> None:
    take("apart", range(10, 31, 20))
    take("between", range(11, 20))
    found = compared("apart", "between")
    assert (found.window, found.metrics) == (None, [])
    assert found.why == "no step in common: apart has steps 10..30 and none of 11..19, between has steps 11..19"
    assert compared("apart", None, Window.between(15, 20)).why == (
        "no step (steps 15..20): apart has steps 10..30 and none of 15..20"
    )


def test_what_a_start_says_beside_its_config_differs_too(take: Take, compared: Compare) -> None:
    start = {"config": CONFIG, "world_size": 1, "loss_norm": "sum", "step": 0, "tokens_total": 0}
    take("one", range(1, 11), start=start)
    again = {"event": "start", **start, "rank": 1}
    take("two", range(1, 11), again, start=start | {"world_size": 8, "kl_weight": 0.5, "step": 9, "tokens_total": 99})
    assert differences(compared("one", "two")) == {"world_size": (1, 8), "kl_weight": (None, 0.5)}
    # Others write their settings flat, and some that are no number.
    for run, lr in (("three", 1e-4), ("four", 2e-4)):
        take(run, range(1, 11), start={"learning_rate": lr, "gamma": 7, "noise_std": float("nan"), "hidden": 8})
    assert differences(compared("three", "four")) == {"lr": (1e-4, 2e-4)}

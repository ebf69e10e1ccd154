"""`compare`: two runs over the steps that both have, config differences only, and figures that others reached."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dflash_tui import paths, references
from dflash_tui.errors import UsageError
from dflash_tui.runs import RunRecord
from dflash_tui.store.access import writer

from .conftest import dflash, refused

pytestmark = pytest.mark.usefixtures("home")

CONFIG: dict[str, Any] = {"lr": 6e-4, "gamma": 10, "noise": {"kind": "none", "std": 0.05}, "run_dir": "/a"}


def ingest(tmp_path: Path, run: str, steps: range, scale: float, config: dict[str, Any], *more: dict[str, Any]) -> None:
    rows = [
        {"event": "start", "time": 1.0, "run_id": run, "config": config},
        *({"step": s, "loss": scale * s, "grad_norm": 0.0, "time": 2.0 * s} for s in steps),
        *more,
    ]
    log = tmp_path / f"{run}.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert dflash("ingest", str(log)).code == 0


def evaluation(step: int, **figures: Any) -> dict[str, Any]:
    return {"event": "eval", "step": step, "time": 1.0, **figures}


def figures(tree: Any) -> dict[tuple[str, str], tuple[Any, ...]]:
    return {(m["metric"], m["stat"]): (m["a"], m["b"], m["delta"], m["pct"]) for m in tree["metrics"]}


def test_what_neither_run_tells_is_not_called_the_same(tmp_path: Path) -> None:
    for run, config in (("a", {}), ("b", {}), ("c", CONFIG), ("d", CONFIG)):
        ingest(tmp_path, run, range(1, 11), 1.0, config)
    told = dflash("compare", "a", "b").out
    assert "neither run tells its config\nneither run tells its code\n" in told
    told = dflash("compare", "c", "d").out
    assert "the configs do not differ\nneither run tells its code\n" in told
    with writer() as store:
        for run in ("c", "d"):
            record = store.detail(run).record
            store.register_run(replace(record, code_hash="4f2a"))
    assert "neither run" not in dflash("compare", "c", "d").out


def test_two_runs_over_the_steps_that_both_have(tmp_path: Path) -> None:
    early = evaluation(250, name="heldout", tau_linear_macro=2.0, lossless=1.0, position_acc=[0.5, 0.25])
    ingest(tmp_path, "one", range(1, 301), 1.0, CONFIG, early)
    other = CONFIG | {"gamma": 7, "noise": {"kind": "none", "std": 0.1}, "run_dir": "/b", "extra": [1]}
    late = evaluation(600, tau_linear_macro=9.0)
    middle = [evaluation(150, lossless=0.5), evaluation(200, name="heldout", tau_linear_macro=3.0, lossless=1.0)]
    ingest(tmp_path, "two", range(101, 601), 2.0, other, *middle, late)
    said = dflash("compare", "one", "two", "--json")
    tree = said.json()
    assert (said.code, list(tree)) == (0, ["a", "b", "window", "config", "metrics", "notes"])
    assert (tree["a"], tree["b"]) == ("one", "two")
    assert tree["window"] == {"kind": "range", "first": 101, "last": 300, "a_n": 200, "b_n": 200}
    assert tree["config"] == [
        {"key": "extra", "a": None, "b": [1]},
        {"key": "gamma", "a": 10, "b": 7},
        {"key": "noise.std", "a": 0.05, "b": 0.1},
    ]
    found = figures(tree)
    assert found["loss", "mean"] == (200.5, 401.0, 200.5, pytest.approx(100))
    assert found["steps", "per_sec"] == (0.5, 0.5, 0.0, 0.0)
    # The evaluation at step 600 lies beyond what both have.
    assert found["tau_linear_macro", "last"] == (2.0, 3.0, 1.0, pytest.approx(50))
    # What an evaluation is called is told where it makes a difference.
    assert ("lossless", "last") in found and ("lossless", "heldout") not in found
    assert found["lossless", "unnamed"] == (None, 0.5, None, None)
    assert found["position_acc", "2"] == (0.25, None, None, None)
    assert ("step", "last") not in found and ("grad_norm", "mean") not in found
    words = dflash("compare", "one", "two").out
    assert "one against two · steps 101..300, 200 and 200 rows" in words
    assert "noise.std" in words and "run_dir" not in words


def test_training_never_stands_beside_an_evaluation(tmp_path: Path) -> None:
    """The mean of train rows of one run and what the other decodes held out differ by half for nothing."""
    trained = [{"step": 11, "accept_len": 2.0, "ddtree_streak8": 3.0, "position_acc": [0.5, 0.25]}]
    held_out = evaluation(11, accept_len=3.0, position_acc=[0.75, 0.5])
    ingest(tmp_path, "one", range(1, 11), 1.0, CONFIG, *trained)
    ingest(tmp_path, "two", range(1, 11), 1.0, CONFIG, *trained, held_out)
    tree = dflash("compare", "one", "two", "--json").json()
    found = figures(tree)
    for metric, stat, value, evaluated in [("accept_len", "last", 2.0, 3.0), ("position_acc", "1", 0.5, 0.75)]:
        named = "train rows" if stat == "last" else f"train rows {stat}"
        assert found[metric, named] == (value, value, 0.0, 0.0)
        assert found[metric, stat] == (None, evaluated, None, None)
    assert found["ddtree_streak8", "train rows"][:2] == (3.0, 3.0) and ("ddtree_streak8", "last") not in found
    assert tree["notes"][0] == "one has no evaluation in steps 1..11"
    assert "train rows: of training" in tree["notes"][1]
    assert "one has no evaluation in steps 1..11" in dflash("compare", "one", "two").out

    [story] = dflash("compare", "one", "two", "--reference", "story", "--json").json()["references"]
    held = {(m["metric"], m["stat"]): (m["of"], m["a"], m["b"]) for m in story["metrics"]}
    assert held["position_acc", "1"] == ("train rows", 0.5, 0.5)
    assert held["full_block_rate", "last"] == (None, None, None)
    words = dflash("compare", "two", "--reference", "story").out
    assert "evaluation" in words and "train rows" in words and "none to compare" in words

    # Where both have the evaluation, that is what is told, and nothing else.
    ingest(tmp_path, "three", range(1, 11), 1.0, CONFIG, *trained, held_out)
    found = figures(dflash("compare", "three", "two", "--json").json())
    assert found["accept_len", "last"][:2] == (3.0, 3.0) and ("accept_len", "train rows") not in found


def test_runs_without_a_step_in_common_still_differ_in_their_configs(tmp_path: Path) -> None:
    ingest(tmp_path, "one", range(1, 11), 1.0, CONFIG)
    ingest(tmp_path, "two", range(20, 31), 1.0, CONFIG | {"gamma": 7})
    tree = dflash("compare", "one", "two", "--json").json()
    assert tree["window"] is None and tree["metrics"] == [] and [one["key"] for one in tree["config"]] == ["gamma"]
    assert "no step in common: one has steps 1..10, two has steps 20..30" in dflash("compare", "one", "two").out
    ingest(tmp_path, "none", range(0), 1.0, CONFIG)
    assert "none has no steps" in dflash("compare", "one", "none").out


def test_what_a_trainer_has_still_to_settle_is_not_said_to_differ(tmp_path: Path) -> None:
    settled = CONFIG | {"device": "cpu", "lr_muon": 6e-3, "optimizer": "muon"}
    ingest(tmp_path, "one", range(1, 11), 1.0, settled, {"event": "start", "world_size": 1, "config": settled})
    given = CONFIG | {"device": "auto", "lr_muon": 0.01, "optimizer": "adamw"}
    with writer() as store:
        for name, config in (("two", given), ("three", given | {"device": "cuda"})):
            store.register_run(RunRecord(name, name, "train", config=config))
    found = {one["key"]: (one["a"], one["b"]) for one in dflash("compare", "one", "two", "--json").json()["config"]}
    assert found == {"lr_muon": (6e-3, 0.01), "optimizer": ("muon", "adamw")}
    found = {one["key"]: (one["a"], one["b"]) for one in dflash("compare", "two", "three", "--json").json()["config"]}
    assert found == {"device": ("auto", "cuda")}


def test_a_run_is_held_against_what_others_reached(tmp_path: Path) -> None:
    named = [evaluation(9, name=name, tau_linear_macro=tau) for name, tau in (("GSM8K", 3.27), ("MBPP", 5.95))]
    told = evaluation(10, ddtree_streak8=3.0, position_acc=[0.46, *[0.1] * 13, 0.075])
    ingest(tmp_path, "one", range(1, 11), 1.0, CONFIG, *named, told)
    tree = dflash("compare", "one", "--reference", "story", "--reference", "paper", "--json").json()
    assert tree["b"] is None and tree["config"] == []
    story, paper = tree["references"]
    held = {(m["metric"], m["stat"]): (m["reference"], m["a"], m["a_pct_of_reference"]) for m in story["metrics"]}
    assert held["position_acc", "1"] == (0.92, 0.46, pytest.approx(50))
    assert held["position_acc", "15"] == (0.375, 0.075, pytest.approx(20))
    assert held["ddtree_streak8", "last"] == (12.38, 3.0, pytest.approx(24.23, abs=0.01))
    assert held["full_block_rate", "last"] == (0.165, None, None)
    of = {m["stat"]: m["a_pct_of_reference"] for m in paper["metrics"]}
    assert of["GSM8K"] == pytest.approx(50) and of["MBPP"] == pytest.approx(100) and of["AIME25"] is None
    words = dflash("compare", "one", "--reference", "story").out
    assert "% of reference" in words and "source: the story's" in words


def test_what_cannot_be_compared_is_one_line(tmp_path: Path) -> None:
    ingest(tmp_path, "one", range(1, 11), 1.0, CONFIG)
    assert "paper or story" in refused(dflash("compare", "one"), 2)
    assert "nobody" in refused(dflash("compare", "one", "nobody"), 2)
    assert "did you mean 'story'?" in refused(dflash("compare", "one", "--reference", "stori"), 2)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not readable as JSON"),
        ("[]", "one object"),
        ('{"tao": {}}', "unknown key 'tao': did you mean 'tau'?"),
        ('{"tau": 3}', "tau = 3: must be an object"),
        ('{"tau": {"x": "a"}}', "tau.x = 'a': is no number"),
        ('{"tau": {"x": NaN}}', "is no number"),
        ('{"position_acc": {"0": 1}}', "slots are numbers from 1 on"),
        ("{}", "holds no figure"),
    ],
)
def test_a_mistake_in_a_reference_names_the_file_and_the_key(text: str, says: str) -> None:
    file = paths.config_dir() / "references" / "mine.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(UsageError) as error:
        references.load("mine")
    assert str(error.value).startswith(f"{file}: ") and says in str(error.value)


def test_ones_own_reference_goes_by_its_name_or_its_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text('{"position_acc": [0.5, 0.25], "tau": {"tau_linear_macro@GSM8K": 3}}')
    assert references.load(str(file)).figures == {
        ("position_acc", "1"): 0.5,
        ("position_acc", "2"): 0.25,
        ("tau_linear_macro", "GSM8K"): 3.0,
    }
    assert references.names() == ["paper", "story"]
    for name in references.names():
        assert references.load(name).source

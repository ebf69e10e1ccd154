import json
import subprocess
import sys
from pathlib import Path

import pytest

from trainer import config as trainer_config
from trainer.__main__ import main
from trainer.config import ConfigError, check, flatten, load, nest, schema

from .trainer_setup import ROOT, nested, records

TYPES = {"integer", "number", "string", "boolean", "list[integer]", "list[number]", "list[string]"}
WORDS = {
    "type",
    "choices",
    "also",
    "min",
    "max",
    "exclusive_min",
    "default",
    "nullable",
    "required",
    "set_by",
    "unit",
} | {"help"}


def refusal(nested_config: dict) -> str:
    with pytest.raises(ConfigError) as caught:
        check(nested_config)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_every_key_says_what_it_is():
    for key, spec in schema().items():
        assert set(spec) <= WORDS, key
        assert spec["type"] in TYPES, key
        assert len(spec["help"]) > 25 and spec["help"].endswith("."), key
        assert "unit" in spec, key
        assert ("default" in spec) != spec.get("required", False), key
        if "default" in spec:
            trainer_config._checked(key, spec["default"], spec)


def test_defaults_fill_in_what_is_not_given():
    config = check({"run_dir": "/r", "target": "tiny", "noise": {"std": 1}})
    assert config["lr"] == 6e-4
    assert config["noise.std"] == 1.0 and isinstance(config["noise.std"], float)
    assert config["noise.kind"] == "none"
    assert config["total_steps"] is None
    assert set(config) == set(schema())


def test_nesting_and_flattening_undo_each_other():
    config = check({"run_dir": "/r", "target": "tiny"})
    assert nest(config)["noise"]["kind"] == "none"
    assert flatten(nest(config)) == config


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"lrr": 1}, ["lrr", "the nearest is lr"]),
        ({"noise": {"sdt": 1}}, ["noise.sdt", "the nearest is noise.std"]),
        ({"noise.std": 1, "noise": {"kind": "loud"}}, ["noise.kind", '"loud"', "none, gaussian, uniform"]),
        ({"noise": 3}, ["noise", "3"]),
        ({"lr": 0}, ["lr", "0", "above 0 and at most 1"]),
        ({"lr": "fast"}, ["lr", '"fast"', "a number above 0 and at most 1"]),
        ({"lr": float("nan")}, ["lr", "NaN"]),
        ({"lr": True}, ["lr", "true"]),
        ({"block_size": 8.0}, ["block_size", "8.0", "an integer at least 2 and at most 64"]),
        ({"block_size": 1}, ["block_size", "1"]),
        ({"seed": None}, ["seed", "null"]),
        ({"gamma": "automatic"}, ["gamma", '"automatic"', 'or "auto"']),
        ({"target_layer_ids": [1, -1]}, ["target_layer_ids", "[1, -1]", "a list of integers at least 0"]),
        ({"target_layer_ids": []}, ["target_layer_ids", "[]"]),
        ({"target_layer_ids": 3}, ["target_layer_ids", "3"]),
        ({"optimizer": "sgd"}, ["optimizer", '"sgd"', "one of adamw"]),
        ({"target": None}, ["target", "null"]),
        ({"total_steps": 10**400}, ["total_steps", "an integer at least 1 or null"]),
        ({"noise": {"std": 10**400}}, ["noise.std", "a number at least 0"]),
    ],
)
def test_a_slip_is_named_with_what_is_allowed(tmp_path, change, parts):
    text = refusal({**nested(tmp_path), **change})
    for part in parts:
        assert part in text


def test_a_missing_target_is_named():
    assert refusal({"run_dir": "/r"}).startswith("target: is missing")


@pytest.mark.parametrize("value", ["auto", 3, 3.5])
def test_gamma_takes_a_word_or_a_number(value):
    assert check({"run_dir": "/r", "target": "tiny", "gamma": value})["gamma"] == value


def test_run_dir_must_be_absolute(tmp_path):
    place = tmp_path / "config.json"
    place.write_text(json.dumps({"run_dir": "here", "target": "tiny"}))
    with pytest.raises(ConfigError, match="run_dir: 'here' is not an absolute path"):
        load(place)


@pytest.mark.parametrize("text", ["", "[]", "{", "7", "[" * 100_000])
def test_a_file_that_is_no_config_is_named(tmp_path, text):
    place = tmp_path / "config.json"
    place.write_text(text)
    with pytest.raises(ConfigError, match=r"config\.json"):
        load(place)


def run_module(*arguments: str, flags: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *flags, "-m", "trainer", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60
    )


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def written(tmp_path: Path, **changes) -> str:
    place = tmp_path / "config.json"
    place.write_text(json.dumps(nested(tmp_path, **changes)))
    return str(place)


def test_a_bad_config_ends_with_2_and_leaves_nothing_behind(tmp_path):
    done = run_module(written(tmp_path, lr=-1))
    assert done.returncode == 2
    assert "lr: -1 is not allowed" in one_line(done)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["config.json"]
    assert run_module(str(tmp_path / "none.json")).returncode == 2
    assert run_module().returncode == 2


def test_an_interpreter_without_torch_is_named_with_what_to_do(tmp_path):
    # -S: no site-packages, so this interpreter has the standard library only.
    done = run_module(written(tmp_path), flags=("-S",))
    assert done.returncode == 1
    line = one_line(done)
    assert sys.executable in line
    assert "pip install torch transformers safetensors" in line
    assert [(r["event"], r["reason"], r["exit_code"]) for r in records(tmp_path)] == [("end", "environment", 1)]


@pytest.mark.parametrize("error", [ImportError("No module named 'tokenizers'"), OSError("libcudart.so.12: not found")])
def test_packages_that_are_there_in_part_are_one_line_and_an_end(tmp_path, monkeypatch, capsys, error):
    """Too old, lacking another package, or a library of the system."""

    class Broken:
        def find_spec(self, name, *_rest):
            if name == "trainer.run":
                raise error

    monkeypatch.delitem(sys.modules, "trainer.run", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    monkeypatch.setattr("trainer.__main__.choose_waiting", lambda: None)
    assert main([written(tmp_path)]) == 1
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and f"{sys.executable} cannot import what training needs ({error})" in line
    assert [(r["event"], r["reason"], r["exit_code"]) for r in records(tmp_path)] == [("end", "environment", 1)]


def test_a_config_is_checked_before_torch_is_imported(tmp_path):
    code = (
        "import sys\nfrom pathlib import Path\nfrom trainer.__main__ import main\n"
        f"code = main([{written(tmp_path, lr='fast')!r}])\n"
        "print(code, sorted({'torch', 'transformers', 'safetensors', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == "2 []\n"

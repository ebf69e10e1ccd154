"""Recipes: the bundled ones are right; every mistake names its key, its value, what is allowed, the nearest key."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_tui import recipes
from dflash_tui.errors import UsageError


@pytest.mark.parametrize("name", recipes.bundled_names())
def test_a_bundled_recipe_is_complete_and_right(name: str) -> None:
    config = recipes.load(name).config
    assert recipes.flatten(config).keys() == recipes.schema().keys()


def test_settings_are_laid_over_the_recipe() -> None:
    config = recipes.load("tiny", ["total_steps=7", "lr=1e-3", "noise.kind=gaussian", "lr_schedule=constant"]).config
    assert (config["total_steps"], config["lr"], config["lr_schedule"]) == (7, 1e-3, "constant")
    assert config["noise"]["kind"] == "gaussian"
    assert recipes.load("tiny", ["data.num_train=null"]).config["data"]["num_train"] is None


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("lrr=1", ["unknown key 'lrr'", "'lr'"]),
        ("noise.sdt=1", ["'noise.sdt'", "'noise.std'"]),
        ("lr=-1", ["lr = -1", "a number"]),
        ("lr=fast", ['lr = "fast"', "a number"]),
        ("lr=true", ["lr = true", "a number"]),
        ("lr_schedule=cosin", ['lr_schedule = "cosin"', "'cosine'", "one of"]),
        ("total_steps=1.5", ["total_steps = 1.5", "an integer"]),
        ("target_layer_ids=[1,'x']", ["target_layer_ids", "list of integers", "'auto'"]),
        ("target_layer_ids=[]", ["target_layer_ids = []", "list of integers"]),
        ("total_steps=some", ["an integer from 1, or null"]),
        ("lr=null", ["lr = null", "a number"]),
        ("total_steps", ["key=value"]),
        ("a\x1b[31m=1", ["a\\x1b[31m"]),
    ],
)
def test_a_bad_setting_is_one_line(setting: str, words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        recipes.load("tiny", [setting])
    message = str(caught.value)
    assert "--set" in message and "\n" not in message and "\x1b" not in message
    assert all(word in message for word in words), message


def test_a_bad_recipe_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    with pytest.raises(UsageError, match="no such recipe file"):
        recipes.load(str(file))
    file.write_text("target = 'tiny'\nlr = [")
    with pytest.raises(UsageError, match=r"mine\.toml: not readable as TOML"):
        recipes.load(str(file))
    file.write_text("target = 'tiny'\nblok_size = 8")
    with pytest.raises(UsageError, match=r"mine\.toml: unknown key 'blok_size': did you mean 'block_size'"):
        recipes.load(str(file))
    file.write_text("lr = 1e-3")
    with pytest.raises(UsageError, match=r"mine\.toml: \w+ is missing"):
        recipes.load(str(file))
    with pytest.raises(UsageError, match="no recipe named 'tyni': did you mean 'tiny'"):
        recipes.load("tyni")


leaves = st.one_of(st.integers(), st.booleans(), st.text())
names = st.text("abcdef_", min_size=1, max_size=6)
trees = st.recursive(
    st.dictionaries(names, leaves, max_size=3), lambda t: st.dictionaries(names, t, min_size=1), max_leaves=9
)


@given(trees)
def test_nesting_undoes_flattening(tree: dict[str, object]) -> None:
    def without_empty(node: object) -> object:
        if not isinstance(node, dict):
            return node
        kept = {key: without_empty(value) for key, value in node.items()}
        return {key: value for key, value in kept.items() if value != {}}

    assert recipes.nest(recipes.flatten(tree)) == without_empty(tree)

"""`check` as a person has it: the story's run and a healthy one, exit codes, an owner that answers, a config."""

import re
from pathlib import Path

import pytest

from dflash_tui import paths
from tests.checks.made_log import rows, story, write_log

from .conftest import dflash, refused, watching

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the runs `story` and `healthy`, for tests that leave it as it is."""
    home = tmp_path_factory.mktemp("judged")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DFLASH_TUI_HOME", str(home))
        for name, made in (("story", story(spikes={11_204: 41.5})), ("healthy", rows(23_000))):
            assert dflash("ingest", str(write_log(home / f"{name}.jsonl", made))).code == 0
    return home


@pytest.fixture
def home_of_both(judged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFLASH_TUI_HOME", str(judged))


@pytest.mark.usefixtures("home_of_both")
def test_the_story_has_findings_and_a_healthy_run_none() -> None:
    said = dflash("check", "story")
    assert said.code == 6 and said.err == ""
    assert "the median gradient norm is 0.06" in said.out
    assert "spiked to 41.5 at step 11,204, 6" in said.out and "times its median" in said.out
    assert "the loss has two humps over the last 2,000 rows" in said.out
    assert said.out.endswith("3 findings\n")
    well = dflash("check", "healthy")
    assert well.code == 0 and well.out.endswith("nothing to warn of\n")


@pytest.mark.usefixtures("home_of_both")
def test_findings_as_json_are_the_same_with_an_owner_and_without() -> None:
    alone = dflash("check", "story", "--json")
    found = alone.json()
    assert alone.code == 6
    assert all(list(one) == ["check", "severity", "sentence", "steps", "values"] for one in found)
    assert [one["check"] for one in found] == ["tiny_gradients", "spikes", "two_humps", "unlogged"]
    assert [one["severity"] for one in found] == ["warning"] * 3 + ["info"]
    assert found[1]["steps"] == [11204]
    with watching():
        assert dflash("check", "story", "--json").json() == found


@pytest.mark.usefixtures("home_of_both")
def test_a_hostile_check_cannot_reach_the_terminal(judged: Path) -> None:
    mine = judged / "config" / "checks" / "mine.sql"
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("-- title: \x1b]0;owned\x07\nselect 'critical' as severity, 'a' || chr(27) || chr(10) as sentence")
    said = dflash("check", "healthy")
    mine.unlink()
    assert said.code == 6 and said.out.startswith("✖ critical  \\x1b]0;owned\\x07: a\\x1b\\n\n")


@pytest.mark.usefixtures("home_of_both")
def test_an_unknown_run_is_one_line() -> None:
    assert "nobody" in refused(dflash("check", "nobody"), 2)


def test_checks_are_listed_with_their_thresholds_and_a_config_sets_them(tmp_path: Path) -> None:
    listed = dflash("checks")
    assert "factor = 500" in listed.out and "config.toml" in listed.err
    file = paths.config_file()
    file.parent.mkdir(parents=True)
    file.write_text("[checks.padding]\nleast = 0.9\n")
    assert dflash("ingest", str(write_log(tmp_path / "r.jsonl", rows(300)))).code == 0
    said = dflash("check", "r")
    assert said.code == 6 and "padding efficiency is 0.84" in said.out
    assert re.search(r"least = 0\.9 \(default 0\.\d+\)", " ".join(dflash("checks").out.split()))
    file.write_text("[checks]\npadding = 3\n")
    assert "checks.padding" in refused(dflash("check", "r"), 2)

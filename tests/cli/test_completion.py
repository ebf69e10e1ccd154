"""What a shell offers behind a command, and the examples under each command's help."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from dflash_tui import paths
from dflash_tui.commands.app import app
from dflash_tui.commands.examples import EXAMPLES
from dflash_tui.runs import RunRecord
from dflash_tui.store.mirror import Mirror

# `main` as the console script calls it, then what it has loaded.
PROGRAM = """
import sys
from dflash_tui.cli import main
sys.argv = ["dflash-tui"]
try:
    main()
finally:
    print(*sorted({"duckdb", "textual", "asyncssh", "torch"} & set(sys.modules)), file=sys.stderr)
"""


def offers(words: str) -> list[str]:
    env = os.environ | {
        "_DFLASH_TUI_COMPLETE": "complete_bash",
        "COMP_WORDS": f"dflash-tui {words}",
        "COMP_CWORD": str(len(words.split(" "))),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr.strip() == "", done.stderr
    return done.stdout.split()


def test_a_shell_is_offered_runs_hosts_recipes_and_keys_without_a_database(home: Path) -> None:
    for run_id, name in (("tiny-1", "first"), ("tiny-2", "a; rm -rf"), ("other", "$(x)")):
        Mirror(run_id).write_record(RunRecord(run_id, name, "train"))
    (Mirror("broken").folder).mkdir(parents=True)
    (Mirror("broken").folder / "run.json").write_text("{")
    assert offers("check ") == ["broken", "first", "other", "tiny-1", "tiny-2"]
    assert offers("logs tiny") == ["tiny-1", "tiny-2"]
    assert offers("launch sto") == ["story-v4", "story-v5"]
    assert offers("launch tiny --set noise.k") == ["noise.kind="]
    assert offers("report tiny-1 --panel gra") == ["grad_hist", "grad_norm"]
    paths.config_file().parent.mkdir(parents=True, exist_ok=True)
    paths.config_file().write_text("[hosts.box]\nkind = 'ssh'\naddress = 'box'\n")
    assert offers("launch tiny --host ") == ["box", "local"]
    paths.config_file().write_text("[hosts.bo")
    assert offers("hosts check ") == []


def test_every_command_has_examples_that_its_parser_takes() -> None:
    told = set()
    for name, lines in EXAMPLES.items():
        for line in lines:
            words = shlex.split(line.split(" < ")[0])[1:]
            command = get_command(app)
            while words and words[0] in getattr(command, "commands", {}):
                command = command.commands[words.pop(0)]  # type: ignore[attr-defined]
            command.make_context(name, words)
            told.add(command.name)
        assert line.startswith(f"dflash-tui {name.split(' ')[0]}")
        assert lines[0] in str(command.epilog)
    names = {*get_command(app).commands, *get_command(app).commands["hosts"].commands}  # type: ignore[attr-defined]
    assert told == names


@pytest.mark.parametrize("words", [["--help"], ["launch", "--help"]])
def test_help_shows_them_as_they_are(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dflash_tui", *words], capture_output=True, text=True, timeout=60, check=True
    )
    lines = {line.strip() for line in done.stdout.splitlines()}
    assert "--install-completion" in done.stdout if len(words) == 1 else set(EXAMPLES["launch"]) <= lines

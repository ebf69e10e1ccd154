"""What stands at the three streams: no terminal, a closed one, a narrow encoding, bytes that are no text."""

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from .conftest import Said, dflash, on_terminal, refused, watching

pytestmark = pytest.mark.usefixtures("home")


def shell(command: str, **env: str) -> Said:
    """`command` in a shell in which `dflash-tui` is ours."""
    script = f'dflash-tui() {{ "{sys.executable}" -m dflash_tui "$@"; }}; {command}'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, env={**os.environ, **env})
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("missing", ["stdin", "stdout", "stderr"])
def test_the_session_needs_all_three_streams_on_a_terminal(missing: str) -> None:
    said = on_terminal(streams={"stdin", "stdout", "stderr"} - {missing})
    assert said.code == 2
    assert missing == "stderr" or said.out.startswith("dflash-tui: the session needs a terminal")


@pytest.mark.parametrize(
    "command",
    ["dflash-tui <&-", "dflash-tui demo --steps x <&-", "dflash-tui stop r <&-", "dflash-tui query - <&-"],
)
def test_a_closed_stdin_is_an_empty_one(command: str) -> None:
    log = Path(os.environ["DFLASH_TUI_HOME"]).with_name("r.jsonl")
    log.write_text('{"step": 1}\n')
    assert dflash("ingest", str(log)).code == 0
    refused(shell(command), 2)


def test_closed_streams_that_are_written_are_no_error() -> None:
    assert shell("dflash-tui panels >&-").code == 0
    said = shell("dflash-tui frobnicate 2>&-")
    assert (said.code, said.out) == (2, "")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (r"printf 'select \xff' | dflash-tui query -", "not UTF-8 at byte 8"),
        (r"dflash-tui query $'select \'\xff\''", r"\xff"),
        (r"dflash-tui report $'\xff'", r"\xff"),
        (r"dflash-tui launch tiny --name $'\xff'", r"\xff"),
        (r"dflash-tui ingest --run r $'/tmp/\xff.jsonl'", r"\xff"),
    ],
)
@pytest.mark.parametrize("owner", [False, True])
def test_bytes_that_are_no_text_are_one_line(command: str, words: str, owner: bool) -> None:
    with watching() if owner else nullcontext():
        assert words in refused(shell(command), 2)


@pytest.mark.parametrize(
    "env",
    [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}],
    ids=["encoding", "locale"],
)
def test_a_narrow_stdout_gets_escapes(env: dict[str, str]) -> None:
    sql = 'dflash-tui query "select chr(228) as a, chr(128512) as b"'
    log = Path(os.environ["DFLASH_TUI_HOME"]).with_name("r.jsonl")
    log.write_text('{"step": 1}\n')
    assert dflash("ingest", str(log)).code == 0
    for form, shown in (("csv", r"\xe4,\U0001f600"), ("table", r"\xe4")):
        said = shell(f"{sql} --format {form}", **env)
        assert said.code == 0 and said.err == "" and shown in said.out
    assert shell(f"{sql} --format json", **env).json() == [{"a": "\xe4", "b": "\U0001f600"}]
    said = shell("dflash-tui report r", **env)
    assert said.code == 0 and r"\xb7" in said.out
    assert "Traceback" not in shell("dflash-tui report $(printf '\\303\\244')", **env).err


HOSTILE = "\x1b]0;x\x07 \x7f \x9b31m \u202e \u2066 \u200b"


def test_csv_shows_control_characters_on_a_terminal_and_is_exact_in_a_pipe(tmp_path: Path) -> None:
    log = tmp_path / "r.jsonl"
    log.write_text(json.dumps({"step": 1, "note": HOSTILE}) + "\n")
    assert dflash("ingest", str(log)).code == 0
    sql = "select extra->>'note' as \"h\x1b[31m\", ['a\x7f'] as list, 'b\x1b'::blob as blob, 1.5 as n from steps"
    shown = on_terminal("query", sql, "--format", "csv").out
    assert shown.splitlines() == [
        r"h\x1b[31m,list,blob,n",
        r'\x1b]0;x\x07 \x7f \x9b31m \u202e \u2066 \u200b,"[""a\x7f""]",b\x1b,1.5',
    ]
    assert dflash("query", sql).out.splitlines()[1].startswith(HOSTILE + ",")


def test_json_is_strict_and_has_no_character_that_a_terminal_obeys(tmp_path: Path) -> None:
    log = tmp_path / "r.jsonl"
    log.write_text(json.dumps({"step": 1, "note": HOSTILE, "config": {"k" + HOSTILE: 1}}) + "\n")
    assert dflash("ingest", str(log)).code == 0
    said = dflash("query", f"select extra->>'note' as n, 1 as \"{HOSTILE}\" from steps", "--format", "json")
    assert said.json() == [{"n": HOSTILE, HOSTILE: 1}]
    panel = Path(os.environ["DFLASH_TUI_HOME"]) / "config" / "panels" / "mine.sql"
    panel.parent.mkdir(parents=True)
    panel.write_text("-- My own.\n--\n-- title: mine\n-- chart: table\nselect extra->>'note' as n from steps;\n")
    report = dflash("report", "r", "--panel", "mine", "--json")
    assert report.json()["panels"]["mine"]["rows"] == [[HOSTILE]]
    for text in (said.out, report.out):
        assert all(c == "\n" or " " <= c <= "~" for c in text)

"""The session in a real terminal: one key launches in a container, its run moves, stops, resumes; a shell between."""

import os
import re
import sys
from pathlib import Path

import pytest

from dflash_tui import requests
from dflash_tui.requests import LaunchRequest

from ..cli.conftest import SMALL_RUN
from ..pvehost.pve import PveHost
from .terminal import Terminal, terminal

pytestmark = pytest.mark.slow

# The real one, which looks for its config in the home of the account, not in $HOME.
SSH = '#!/bin/sh\nexec /usr/bin/ssh -F "$HOME/.ssh/config" "$@"\n'
SETTINGS = ("total_steps=100000", *SMALL_RUN)


@pytest.fixture
def container(pve_box: PveHost, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PveHost:
    """Container 200 as the host `ct`, where the recipe `tiny` was launched last, somewhere else."""
    ssh = tmp_path / "bin/ssh"
    ssh.parent.mkdir()
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    (home / "config").mkdir(parents=True)
    (home / "data").mkdir()
    workdir = f"/workspace/{tmp_path.name}"
    there = f'vmid = 200\npython = "{sys.executable}"\nworkdir = "{workdir}"\n'
    (home / "config/config.toml").write_text(f'[hosts.ct]\nkind = "proxmox"\naddress = "pve"\n{there}')
    (pve_box.rootfs(200) / workdir[1:]).mkdir()
    requests.remember(LaunchRequest("tiny", "local", "evening", SETTINGS))
    return pve_box


def step(screen: str) -> int:
    """The step that the status line shows; 0 for none."""
    found = re.search(r"step ([\d,]+)/100,000", screen.splitlines()[0])
    return int(found[1].replace(",", "")) if found else 0


def moves(screen: Terminal) -> int:
    """Wait until the dashboard shows a later step than now; that step."""
    first = step(screen.until(step, "a step"))
    return step(screen.until(lambda seen: step(seen) > first, f"a step after {first}"))


def has_stopped(screen: Terminal) -> str:
    """Wait until the run has stopped and the dialog that saw to it has gone; the screen."""
    return screen.until(lambda seen: seen.startswith(" ■ stopped") and "Stopping" not in seen, "a run that has stopped")


def test_one_key_launches_in_a_container_and_two_more_stop_and_resume_it(container: PveHost, tmp_path: Path) -> None:
    with terminal(tmp_path / "transcript.txt") as screen:
        screen.shows("No runs yet.")
        screen.press("3", why="the hosts")
        screen.until(lambda seen: re.search(r"└ ct .*● reachable|├ ct .*● reachable", seen), "the container answers")
        screen.press("j", "j", why="local, the node, the container")
        screen.until(lambda seen: re.search(r"▸ [├└] ct", seen), "the cursor on the container")
        screen.press("s", why="a shell in the container, by way of its node")
        screen.until(lambda seen: seen.strip() == "#", "its prompt")
        screen.press(f"echo $((40+2)) $(ls -d /workspace/{tmp_path.name})", "Enter")
        assert "Hosts" not in screen.shows(f"42 /workspace/{tmp_path.name}")
        screen.press("exit", "Enter")
        screen.until(lambda seen: re.search(r"▸ [├└] ct", seen), "the cursor on the container")
        screen.press("L", why="launch the last recipe here")
        screen.shows("● running  evening", "ct")
        moves(screen)
        screen.press("X", why="stop")
        screen.shows("Stop evening on ct?")
        screen.press("Enter")
        stopped = step(has_stopped(screen))
        screen.press("r", why="resume")
        screen.shows("● running", "attempt 2")
        assert moves(screen) > stopped, "it went on where it stopped"
        screen.press("X", why="stop it again")
        screen.shows("Stop evening on ct?")
        screen.press("Enter")
        has_stopped(screen)
        screen.press("~", why="what was run on hosts")
        screen.shows("/usr/sbin/pct exec 200 --keep-env 0 -- ", "✓ 0")
        screen.press("Escape")
        screen.until(lambda seen: "Commands of this session" not in seen, "the log closed")
        screen.press("q")
        screen.until(lambda seen: "■ stopped" not in seen, "the session has left the screen")
    assert container.processes_in(200) == []


def test_a_shell_has_the_terminal_for_a_while(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")
    monkeypatch.setenv("PS1", "shell> ")
    (home / "config").mkdir(parents=True)
    (home / "config/config.toml").write_text('[hosts.gpu]\nkind = "ssh"\naddress = "me@127.0.0.1:1"\n')
    with terminal(tmp_path / "transcript.txt") as screen:
        screen.shows("No runs yet.")
        screen.press("3")
        screen.shows("Hosts 2", "✗ unreachable")
        screen.press("s", why="a shell on this machine")
        screen.shows("shell>")
        screen.press("C-c", why="meant for the shell")
        screen.shows("^C")
        screen.press("echo left=$((40+2))", "Enter")
        assert "Hosts" not in screen.shows("left=42")
        screen.press("exit", "Enter")
        screen.shows("Hosts 2", "▸ local")
        screen.press("j", "s", why="a shell on a machine that refuses us")
        screen.shows("ssh ended with exit code 255. Enter goes back")
        screen.press("Enter")
        screen.shows("Hosts 2", "▸ gpu", "no shell on gpu")

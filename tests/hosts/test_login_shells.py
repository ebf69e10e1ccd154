"""Whatever shell a user logs in with, and whatever its start-up files print: the same argv, output and files."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dflash_tui.config import HostSpec
from dflash_tui.errors import UnreachableError
from dflash_tui.hosts import open_host, ssh
from dflash_tui.hosts.base import Host
from dflash_tui.hosts.shell import MARK, portable

from ..pvehost.fixtures import stanza
from ..pvehost.pve import USERS, PveHost
from .test_every_host import CASES, ECHO, WORDS, run_python

SHELLS = ("bashy", "dashy", "fishy", "cshy", "zshy", "noisy")


def user(pve: PveHost, config: Path, name: str, start_up: dict[str, str] | None = None) -> Host:
    """The host as that user of it; `start_up` are files of its home."""
    home = pve.folder / "home" / name
    for file in home.iterdir():
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    for file_name, text in (start_up or {}).items():
        file = home / file_name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    subprocess.run(["chown", "-R", f"--reference={home}", home], check=True)
    config.write_text(stanza(name, pve, name))
    return open_host(HostSpec(kind="ssh", name=name, address=name))


@pytest.fixture(params=SHELLS)
def shell_user(request: pytest.FixtureRequest, pve: PveHost, ssh_config: Path) -> Host:
    name: str = request.param
    if not os.access(USERS[name], os.X_OK):
        pytest.skip(f"no {USERS[name]} here: install it to test such users")
    greeting = {".bashrc": (CASES / "case59_bashrc.txt").read_text()} if name == "noisy" else None
    return user(pve, ssh_config, name, greeting)


async def test_nasty_arguments(shell_user: Host) -> None:
    """case61, and case59 for the user whose .bashrc greets."""
    given_args = json.loads((CASES / "case61_nasty_args.json").read_text())
    done = await run_python(shell_user, ECHO, *given_args)
    assert done.stdout == "\0".join(given_args).encode()
    assert (done.stderr, done.code) == (b"", 0)
    await shell_user.close()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(WORDS, min_size=1, max_size=6))
async def test_any_argument(shell_user: Host, words: list[str]) -> None:
    done = await run_python(shell_user, ECHO, *words)
    assert done.stdout == b"\0".join(os.fsencode(word) for word in words)


async def test_a_file_arrives(shell_user: Host, pve: PveHost) -> None:
    """case59: where SFTP would break on the greeting."""
    data = os.urandom(100_000)
    await shell_user.put(data, "-rf $HOME 'x'", mode=0o640)
    file = pve.folder / "home" / shell_user.name / "-rf $HOME 'x'"
    assert file.read_bytes() == data
    assert file.stat().st_mode & 0o777 == 0o640
    await shell_user.close()


async def test_a_signal_comes_through(shell_user: Host) -> None:
    done = await run_python(shell_user, "import os; os.kill(os.getpid(), 15)")
    assert (done.code, done.signal) == (None, 15)
    await shell_user.close()


async def test_what_a_login_shell_would_put_in_the_way_is_not_used(pve: PveHost, ssh_config: Path) -> None:
    """Aliases and functions of start-up files, which csh and fish read for every command."""
    for name, file in (("cshy", ".cshrc"), ("zshy", ".zshenv"), ("fishy", ".config/fish/config.fish")):
        if os.access(USERS[name], os.X_OK):
            equals = "=" if name == "zshy" else " "
            text = f"alias echo{equals}false\nalias cat{equals}'echo no'\n"
            one = user(pve, ssh_config, name, {file: text})
            assert (await one.run(["echo", "mine"])).stdout == b"mine\n"
            assert (await one.run(["cat"], stdin=b"mine")).stdout == b"mine"
            await one.close()


async def test_start_up_files_that_trace_what_they_run(pve: PveHost, ssh_config: Path) -> None:
    one = user(pve, ssh_config, "noisy", {".bashrc": "set -xv\necho one >&2\n"})
    done = await one.run(["sh", "-c", "echo out; echo err >&2"])
    assert (done.stdout, done.stderr) == (b"out\n", b"err\n")
    await one.close()


async def test_start_up_files_that_never_end_are_named(
    pve: PveHost, ssh_config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh, "START_S", 0.5)
    one = user(pve, ssh_config, "noisy", {".bashrc": "echo Your name?\nread name\n"})
    with pytest.raises(UnreachableError) as caught:
        await one.run(["true"])
    assert str(caught.value) == (
        "noisy: the login shell started nothing within 0.5 s and said Your name?:"
        " look at its start-up files, .bashrc or the like"
    )
    await one.close()


async def test_start_up_files_that_end_the_shell_are_named(pve: PveHost, ssh_config: Path) -> None:
    one = user(pve, ssh_config, "noisy", {".bashrc": "echo maintenance until Monday\nexit 3\n"})
    with pytest.raises(UnreachableError, match=r"did not start our program \(maintenance until Monday, exit code 3\)"):
        await one.run(["true"])
    await one.close()


async def test_an_account_without_a_shell_is_named(pve: PveHost, ssh_config: Path) -> None:
    one = user(pve, ssh_config, "closed")
    with pytest.raises(UnreachableError, match=r"\(This account is currently not available\., exit code 1\)"):
        await one.run(["true"])
    await one.close()


@settings(max_examples=30, deadline=None)
@given(words=st.lists(WORDS, min_size=1, max_size=6))
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("shell", [["dash"], ["bash"], ["bash", "--posix"], ["busybox", "sh"], ["zsh"]], ids=" ".join)
def test_the_program_that_undoes_the_spelling_is_read_alike_by(shell: list[str], locale: str, words: list[str]) -> None:
    """Whatever /bin/sh is over there."""
    if not (found := shutil.which(shell[0])):
        pytest.skip(f"no {shell[0]} here")
    printed = portable(["printf", "%s\\0", *words])
    done = subprocess.run(
        [found, *shell[1:], *printed[1:]], capture_output=True, env={"LC_ALL": locale, "PATH": "/usr/bin:/bin"}
    )
    assert done.stdout == MARK + b"".join(os.fsencode(word) + b"\0" for word in words)
    assert done.stderr == MARK

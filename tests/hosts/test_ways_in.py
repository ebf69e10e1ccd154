"""What a person types into a terminal to stand on a host, and which machines his ~/.ssh/config knows by name."""

from pathlib import Path

import pytest

from dflash_tui.config import HostSpec
from dflash_tui.errors import UsageError
from dflash_tui.hosts.doorway import shell_words
from dflash_tui.hosts.ssh.names import ssh_names


def ssh(address: str) -> HostSpec:
    return HostSpec(kind="ssh", name="box", address=address)


def container(address: str, *, sudo: bool = False) -> HostSpec:
    return HostSpec(kind="proxmox", name="ct", address=address, vmid=200, sudo=sudo)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (HostSpec(kind="local", name="local"), ["/bin/fish"]),
        (ssh("gpu"), ["ssh", "-t", "--", "gpu"]),
        (ssh("me@gpu:2222"), ["ssh", "-t", "-p", "2222", "-l", "me", "--", "gpu"]),
        (ssh("[fe80::1]:22"), ["ssh", "-t", "-p", "22", "--", "fe80::1"]),
        (ssh("-oProxyCommand=x@gpu"), ["ssh", "-t", "-l", "-oProxyCommand=x", "--", "gpu"]),
        (container("root@pve"), ["ssh", "-t", "-l", "root", "--", "pve", "/usr/sbin/pct", "enter", "200"]),
        (container("pve", sudo=True), ["ssh", "-t", "--", "pve", "sudo", "/usr/sbin/pct", "enter", "200"]),
        (container("local"), ["/usr/sbin/pct", "enter", "200"]),
    ],
)
def test_the_words_of_a_shell(spec: HostSpec, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/fish")
    assert shell_words(spec) == words


def test_an_address_that_is_none_opens_no_shell() -> None:
    with pytest.raises(UsageError, match=r"hosts\.box\.address"):
        shell_words(ssh("-oProxyCommand=x"))


def test_names_of_ssh_config_with_its_includes(ssh_config: Path) -> None:
    (ssh_config.parent / "config.d").mkdir()
    (ssh_config.parent / "config.d/lab").write_text('host "lab1" lab2 "lab 3"\n  User me\nInclude config\n')
    ssh_config.write_text(
        "# Host nobody\nHost=gpu1 gpu2 !gpu3 *.lan\nMatch host x\nInclude config.d/* /nowhere\nHost gpu1\n"
    )
    assert ssh_names() == ["gpu1", "gpu2", "lab1", "lab2"]


def test_without_a_file_there_are_no_names(ssh_config: Path) -> None:
    ssh_config.unlink()
    assert ssh_names() == []

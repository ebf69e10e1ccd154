"""config.toml: what may stand there, and that a mistake is named with its place and its cure."""

import sys
from pathlib import Path

import pytest

from dflash_tui import config, paths
from dflash_tui.errors import UsageError


def write(text: str) -> None:
    file = paths.config_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_without_a_file_there_is_the_host_local() -> None:
    local = config.load().host("local")
    assert (local.kind, local.python) == ("local", sys.executable)
    assert Path(local.workdir or "") == paths.local_workdir()


def test_a_full_file_is_read() -> None:
    write("""
        [hosts.pve1]
        kind = "proxmox"
        address = "root@pve:22"
        vmid = 200
        env = { HF_HOME = "/models" }
        [hosts.local]
        python = "/opt/venv/bin/python"
        [stop]
        grace_s = 30
        [panels]
        length_edges = [1000, 2000]
        [aliases]
        my_loss = "loss"
        [checks]
        baseline = "golden"
        [checks.spikes]
        factor = 300
        [alerts]
        bell = true
        command = ["notify-send", "dflash-tui"]
    """)
    read = config.load()
    assert read.host("pve1").vmid == 200 and read.host("pve1").name == "pve1"
    assert read.host("local").python == "/opt/venv/bin/python"
    assert read.stop.grace_s == 30.0 and read.panels.length_edges == (1000.0, 2000.0)
    assert read.aliases == {"my_loss": "loss"}
    assert (read.checks.baseline, read.checks.thresholds) == ("golden", {"spikes": {"factor": 300.0}})
    assert (read.alerts.bell, read.alerts.command) == (True, ("notify-send", "dflash-tui"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[hots.a]\nkind='ssh'", ["unknown key hots", "'hosts'"]),
        ("[hosts.a]\nkind='ssh'\nadress='x'", ["hosts.a.adress", "'address'"]),
        ("[hosts.a]\nkind='shh'\naddress='x'", ["hosts", "shh"]),
        ("[hosts.a]\nkind='ssh'", ["hosts.a", "needs address"]),
        ("[hosts.a]\nkind='proxmox'\naddress='x'", ["needs vmid"]),
        ("[hosts.a]\nkind='ssh'\naddress='x'\nvmid=200", ["hosts.a", "has no vmid"]),
        ("[hosts.a]\nkind='ssh'\naddress='x'\nsudo=true", ["hosts.a.sudo", "proxmox"]),
        ("[hosts.a]\nkind='proxmox'\naddress='x'\nvmid=7", ["hosts", "vmid", "100"]),
        ("[hosts.a]\nkind='local'", ["local"]),
        ("[hosts]\na = 3", ["hosts.a", "table"]),
        ("hosts = 3", ["hosts", "table"]),
        ("[stop]\ngrace = 3", ["stop.grace", "'grace_s'"]),
        ("[stop]\ngrace_s = 'x'", ["stop.grace_s"]),
        ("[panels]\nlength_edges = [1]", ["panels.length_edges"]),
        ("[hosts.a", ["not readable as TOML"]),
        ("[checks]\nspikes = 3", ["checks.spikes", "table"]),
        ("[checks]\nbaseline = 3", ["checks.baseline", "table"]),
        ("[checks.spikes]\nfactor = 'x'", ["checks.spikes.factor"]),
        ("[alerts]\nbel = true", ["alerts.bel", "'bell'"]),
        ("[alerts]\ncommand = 'beep'", ["alerts.command"]),
        ("[alerts]\ncommand = ['']", ["alerts.command"]),
    ],
)
def test_a_mistake_is_one_line_with_the_file_the_key_and_the_cure(text: str, words: list[str]) -> None:
    write(text)
    with pytest.raises(UsageError) as caught:
        config.load()
    message = str(caught.value)
    assert str(paths.config_file()) in message and "\n" not in message
    assert all(word in message for word in words), message


def test_an_unknown_host_names_the_nearest() -> None:
    write("[hosts.gpu2]\nkind='ssh'\naddress='a'")
    with pytest.raises(UsageError, match="did you mean 'gpu2'"):
        config.load().host("gpu3")

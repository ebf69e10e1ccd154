"""`hosts`, `hosts check`, `hosts add`, `hosts scan`: this machine, one over SSH, containers of a Proxmox host."""

import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from dflash_tui import config
from dflash_tui.errors import UsageError

from ..pvehost.fixtures import stanza
from ..pvehost.pve import PveHost
from ..pvehost.sshd import SshServer
from ..remote.nvidia import FakeNvidiaSmi
from .conftest import dflash, from_scratch, refused

KEYS = ["name", "kind", "address", "vmid", "state", "since", "latency_ms", "gpus", "disk_free", "clock_offset_s"]
KEYS += ["runs", "note"]
CARDS = "index, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%]\n0, Example GPU, 40960, 81920, 97\n"
TRAINS = "print({'step': 1, 'loss': 2.0})\n"


def write_config(home: Path, text: str) -> Path:
    file = home / "config/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def by_name(said: Any) -> dict[str, Any]:
    return {tree["name"]: tree for tree in said}


def test_every_host_and_how_it_stands(
    box: SshServer, pve_box: PveHost, ssh_config: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smi = FakeNvidiaSmi(tmp_path / "bin")
    smi.say(CARDS)
    monkeypatch.setenv("PATH", f"{smi.folder}:{os.environ['PATH']}")
    with ssh_config.open("a") as file:
        file.write(stanza("stranger", box, box.user, UserKnownHostsFile="/dev/null"))
        file.write(stanza("locked", box, "nobody", IdentityFile=f'"{box.keys / "other"}"'))
        file.write(stanza("down", box, box.user, Port="1"))
    ssh = "".join(f'[hosts.{n}]\nkind="ssh"\naddress="{n}"\n' for n in ("box", "stranger", "locked", "down"))
    ssh += f'[hosts.old]\nkind="ssh"\naddress="box"\npython="{tmp_path}/old"\n'
    cts = "".join(f'[hosts.ct{n}]\nkind="proxmox"\naddress="pve"\nvmid={n}\n' for n in (200, 201, 300))
    write_config(home, ssh + cts)
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\necho Python 2.7 does not know -I >&2; exit 2\n")
    old.chmod(0o755)
    said = from_scratch("hosts", "--json").json()
    assert [list(tree) for tree in said] == [KEYS] * 9
    found = by_name(said)
    states = {name: tree["state"] for name, tree in found.items()}
    assert states == {
        "box": "reachable", "stranger": "key-unknown", "locked": "auth-failed", "down": "unreachable",
        "old": "reachable", "ct200": "reachable", "ct201": "unreachable", "ct300": "unreachable", "local": "reachable",
    }  # fmt: skip
    [gpu] = found["local"]["gpus"]
    assert (gpu["says"], gpu["memory_used_mib"]) == ("40.0 GiB of 80.0 GiB used, owner not visible", 40960)
    assert (found["box"]["gpus"], found["box"]["note"]) == (None, "no nvidia-smi here")
    assert found["box"]["latency_ms"] > 0 and abs(found["box"]["clock_offset_s"]) < 2
    assert found["box"]["disk_free"] > 0 and found["box"]["runs"] == 0 and found["down"]["runs"] is None
    assert "does not know -I" in found["old"]["note"] and "hosts.old.python" in found["old"]["note"]
    assert "pct start 201" in found["ct201"]["note"] and "pve2" in found["ct300"]["note"]
    assert (found["ct200"]["kind"], found["ct200"]["vmid"]) == ("proxmox", 200)
    # The same for eyes.
    table = dflash("hosts").out.splitlines()
    assert len(table) == 10 and "0: 40.0 GiB of 80.0 GiB used, owner not visible" in "".join(table)


def test_a_thorough_look(box: SshServer, pve_box: PveHost, home: Path) -> None:
    cts = "".join(f'[hosts.ct{n}]\nkind="proxmox"\naddress="pve"\nvmid={n}\n' for n in (200, 201))
    write_config(home, f'[hosts.box]\nkind="ssh"\naddress="box"\npython="{sys.executable}"\n{cts}')
    said = dflash("hosts", "check", "box")
    assert said.code == 0, said.out
    assert f"ok  python     {sys.executable} is Python 3." in said.out and "locks work there" in said.out
    pve_box.set_lock(200, "backup")
    try:
        said = dflash("hosts", "check", "ct200")
    finally:
        pve_box.set_lock(200, None)
    assert said.code == 6, said.out
    assert "DO  container  container 200 (train200) is running, and locked (backup)" in said.out
    assert "ok  node       containers: 200 train200 running, locked: backup; 201 train201 stopped" in said.out
    assert "300 far300" in said.out and "on node pve2" in said.out
    said = dflash("hosts", "check", "ct201")
    assert said.code == 5
    assert "DO  reach      ct201: container 201 on pve is stopped; start it with `pct start 201`" in said.out


def test_a_host_is_added_when_it_has_been_reached(box: SshServer, ssh_config: Path, home: Path) -> None:
    file = write_config(home, "# mine\n[stop]\ngrace_s = 60  # long\n")
    workdir = "/tmp/δ 'x' \"y\" \\n"
    said = dflash("hosts", "add", "gpu", "box", "--python", "python3")
    assert said.code == 0, said.err
    assert said.out == f"gpu: written to {file}\n"
    assert "ok  agent" in said.err and "answers in" in said.err
    text = file.read_text()
    assert text.startswith("# mine\n[stop]\ngrace_s = 60  # long\n\n[hosts.gpu]\n")
    assert tomllib.loads(text)["hosts"]["gpu"] == {"kind": "ssh", "address": "box", "python": "python3"}
    assert dflash("hosts", "add", "odd", "box", "--no-check", "--workdir", workdir, "--vmid", "200", "--sudo").code == 0
    assert config.load().host("odd") == config.HostSpec(
        kind="proxmox", name="odd", address="box", vmid=200, workdir=workdir, sudo=True
    )

    before = file.read_text()
    with ssh_config.open("a") as words:
        words.write(stanza("stranger", box, box.user, UserKnownHostsFile="/dev/null"))
        words.write(stanza("down", box, box.user, Port="1"))
    line = refused(dflash("hosts", "add", "new", "stranger"), 5)
    assert "SHA256:" in line and "host key" in line
    assert "refuses connections" in refused(dflash("hosts", "add", "new", "down"), 5)
    assert "there is a host 'gpu' already" in refused(dflash("hosts", "add", "gpu", "box"), 2)
    assert "cannot name a host" in refused(dflash("hosts", "add", "a b", "box"), 2)
    assert "address" in refused(dflash("hosts", "add", "new", "user@"), 2)
    assert "expected" in refused(dflash("hosts", "add", "new", "box", "--vmid", "3"), 2).lower()
    assert file.read_text() == before


def test_an_addition_never_breaks_the_file(home: Path) -> None:
    file = write_config(home, 'hosts = {gpu = {kind = "ssh", address = "x"}}\n')
    with pytest.raises(UsageError, match="cannot be added to it"):
        config.Addition("new", {"kind": "ssh", "address": "x"})
    file.unlink()
    real = home / "dotfiles.toml"
    real.write_text("")
    real.chmod(0o640)
    file.symlink_to(real)
    addition = config.Addition("new", {"kind": "ssh", "address": "x\x7f\n\"'"})
    real.write_text("# changed\n")
    with pytest.raises(UsageError, match="was changed meanwhile"):
        addition.write()
    config.Addition("new", {"kind": "ssh", "address": "x\x7f\n\"'"}).write()
    assert file.is_symlink() and real.stat().st_mode & 0o777 == 0o640
    assert config.load().host("new").address == "x\x7f\n\"'"
    with pytest.raises(UsageError, match="no shell makes a home of ~ there"):
        config.Addition("other", {"kind": "ssh", "address": "x", "python": "~/venv/bin/python"})


def test_a_fresh_laptop_finds_all_runs_of_a_host(
    box: SshServer, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'[hosts.box]\nkind="ssh"\naddress="box"\nworkdir="{tmp_path}/far"\n'
    write_config(home, text)
    script = tmp_path / "t.py"
    script.write_text(TRAINS)
    run = dflash("launch-script", str(script), "--host", "box", "--name", "First One", "--follow").out.strip()
    mirror = (home / "data/mirrors" / run / "train_log.jsonl").read_bytes()
    before = dflash("runs", "--json").json()
    (tmp_path / "far/dflash-runs/broken").mkdir()

    other = tmp_path / "laptop"
    monkeypatch.setenv("DFLASH_TUI_HOME", str(other))
    write_config(other, text.replace("hosts.box", "hosts.theirs"))
    said = dflash("hosts", "check", "theirs")
    assert f"not known here yet: broken, {run}; `dflash-tui hosts scan theirs` brings them here" in said.out
    said = dflash("hosts", "scan")
    assert (said.code, said.out) == (0, f"{run}\n"), said.err
    assert f"{run}: finished on theirs, brought here" in said.err
    found = dflash("runs", "--json").json()
    keep = ("run_id", "name", "kind", "state", "reason", "code", "attempt", "step")
    assert [{k: one[k] for k in keep} for one in found] == [{k: one[k] for k in keep} for one in before]
    assert found[0]["host"] == "theirs"
    assert (other / "data/mirrors" / run / "train_log.jsonl").read_bytes() == mirror
    assert dflash("query", "select step, loss from steps").out.splitlines()[1:] == ["1,2.0"]
    # Nothing new is nothing, and a host that is away says so.
    said = dflash("hosts", "scan", "theirs")
    assert (said.code, said.out) == (0, "") and "theirs: nothing new: all of its runs (1) are known here" in said.err
    write_config(other, '[hosts.gone]\nkind="ssh"\naddress="nobody@127.0.0.1:1"\n')
    assert "refuses connections" in refused(dflash("hosts", "scan", "gone"), 5)

"""Hosts of every kind and in every state, for the screens' tests: no machine is asked."""

from typing import Any

from dflash_tui.config import Config, HostSpec
from dflash_tui.hosts.base import Exit
from dflash_tui.hosts.containers import Container
from dflash_tui.hosts.journal import Command
from dflash_tui.machines import Look, State
from dflash_tui.remote.check import Finding
from dflash_tui.remote.machine import Gpu, GpuProcess
from dflash_tui.ui.app import DflashApp

from .cockpit import FROZEN_S, make_app
from .scripted_seat import ScriptedSeat, make_run, make_view

CHANGED = (
    "changed: THE HOST KEY OF root@gpu9 HAS CHANGED: it shows ssh-ed25519 SHA256:n3wn3wn3w, on file is ssh-ed25519"
    " SHA256:0ld0ld0ld. Somebody may be in between: nothing was sent."
)
GPUS = (
    Gpu(0, "NVIDIA H200", 71_000.0, 143_000.0, 97.0, 61.0, 640.0, (GpuProcess(4121, "python", 71_000.0, "v5-hard"),)),
    Gpu(1, "NVIDIA H200", 4.0, 143_000.0, 0.0, 30.0, 74.0, ()),
)
FINDINGS = [
    Finding("reach", "ok", "answers in 12 ms, as user root"),
    Finding("python", "critical", "no python3 there: install one there, or set hosts.gpu2.python"),
    Finding("clock", "warning", "3,600 s behind ours: ages are right all the same; run NTP"),
    Finding("shell", "info", "/bin/[red]\x1b[31m; its start-up files are never needed"),
]
HOSTILE = "[b]evil\\x1b[2J"


def spec(name: str, kind: Any = "ssh", **more: Any) -> HostSpec:
    return HostSpec(kind=kind, name=name, **({"address": name} | more))


SPECS = [
    spec("gpu2", address="root@gpu2:22", workdir="/workspace"),
    spec("ct200", "proxmox", address="pve", vmid=200),
    spec("dead"),
    spec("ct201", "proxmox", address="pve", vmid=201),
    spec("changed"),
    spec("shut", address="me@shut"),
    spec("new"),
    HostSpec(kind="local", name="local"),
]
TROUBLES: dict[str, tuple[State, str]] = {
    "dead": ("unreachable", "no answer from root@dead within 10 s: is the machine on, and the address right?"),
    "changed": ("key-changed", CHANGED),
    "shut": ("auth-failed", "shut: me@shut lets none of our keys in (files: none): add one with `ssh-copy-id`"),
    "new": ("key-unknown", "new: the host key of me@new is not known yet: ssh-ed25519 SHA256:abc"),
    "ct201": ("unreachable", "ct201: container 201 on pve is stopped; start it with `pct start 201`"),
}
PCT = ("/usr/sbin/pct", "exec", "200", "--")
COMMANDS = [
    Command(1, "gpu2", ("python3", "-I", "-S", "-", "/workspace", "0ab1.pyz"), 0.0, 900.0, 0.214, Exit(0, None)),
    Command(2, "gpu2", ("python3", "/workspace/dflash-agent/0ab1.pyz", "serve"), 60.0, FROZEN_S - 95.0),
    Command(3, "ct200", (*PCT, "rm", "a b", "--token", "***"), 75.0, 1.0, 2.0, Exit(1, None)),
    Command(4, "dead", ("python3", "-"), 80.0, 1.0, 10.0, None, "no answer from root@dead within 10 s"),
    Command(5, "local", ("cat", "\x1b[2J"), 81.0, 1.0, 12.0, Exit(None, 9)),
]


def make_hosts_app(*specs: HostSpec) -> DflashApp:
    """The session over `specs`, or over all of SPECS."""
    runs = [make_run("v5-hard"), make_run("v4", host="dead", no_contact_s=41.0)]
    app = make_app(runs)
    seat = app.seat
    assert isinstance(seat, ScriptedSeat)
    seat.config = Config(hosts={one.name: one for one in specs or SPECS})
    for one in seat.config.hosts.values():
        if one.name in TROUBLES:
            state, note = TROUBLES[one.name]
            seat.looks[one.name] = Look(one, state, None, note)
    gpu2 = seat.config.hosts.get("gpu2")
    if gpu2:
        view = make_view(gpus=GPUS, no_gpus=None, living=("v5-hard",), clock_offset_s=-3600.0, disk_free=5 << 30)
        seat.looks["gpu2"] = Look(gpu2, "reachable", view, None)
    seat.told_containers = [
        Container(200, "train200", "running", "backup"),
        Container(201, "train201", "stopped"),
        Container(205, HOSTILE, "running"),
        Container(300, "far", "running", None, "pve2"),
    ]
    seat.findings = FINDINGS
    seat.ran = COMMANDS
    return app

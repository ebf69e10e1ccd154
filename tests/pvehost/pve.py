"""A throwaway "Proxmox host": a real OpenSSH server and a stand-in for pct in namespaces of their own, and its faults.

Needs root and util-linux. What a test puts on the host is not visible in a container, nor the other way round.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from .sshd import SSHD, die_with_parent, free_port, make_key, missing_sshd, sshd_config, wait_for_ssh, write_known_hosts

NODE = "pve"
STANDINS = Path(__file__).parent / "standins"
PYTHON = str(Path(sys.executable).resolve())
_PROGRAMS = {"usr/sbin/pct": "pct.py", "usr/bin/pvesh": "pvesh.py", "usr/bin/lxc-info": "lxc_info.py"}
_ROOT_FOLDERS = ("usr", "etc", "root", "tmp", "var/tmp", "home", "opt", "workspace")
# One user a login shell, and what the others are for: `noisy` greets, `trusted` may use sudo, `plain` may not.
USERS = {
    "bashy": "/bin/bash",
    "dashy": "/bin/dash",
    "fishy": "/usr/bin/fish",
    "cshy": "/usr/bin/tcsh",
    "zshy": "/usr/bin/zsh",
    "noisy": "/bin/bash",
    "trusted": "/bin/bash",
    "plain": "/bin/bash",
    "closed": "/usr/sbin/nologin",
}
_FIRST_UID = 4200


def missing_pve() -> str | None:
    """Why there can be no such host here, or None."""
    if os.geteuid() != 0:
        return "not root: the Proxmox host of the tests needs namespaces"
    return missing_sshd()


@dataclass
class PveHost:
    """`keys` as in SshServer. Containers lie in `folder`/lxc/VMID/rootfs, as files that a test can look at."""

    folder: Path
    port: int
    binds: tuple[Path, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    keys: Path = field(init=False)

    def __post_init__(self) -> None:
        self.keys = self.folder / "keys"

    @classmethod
    def make(cls, folder: Path, *, binds: tuple[Path, ...] = (), settings: tuple[str, ...] = ()) -> Self:
        """A host without containers, not started yet; `binds` are read-only folders in every container."""
        places = (
            "bin", "usr/bin", "usr/sbin", "etc/pve", "etc/sudoers.d", "home", "root", "lock", "lxc", "keys",
            f"pve/nodes/{NODE}/lxc",
        )  # fmt: skip
        for name in places:
            (folder / name).mkdir(parents=True)
        folder.chmod(0o755)
        host = cls(folder, free_port(), (Path("/usr"), *binds))
        for name in ("host", "client", "other"):
            make_key(host.keys / name)
        host.trust(host.keys / "host.pub")
        for name, source in _PROGRAMS.items():
            _write_program(folder / name, (STANDINS / source).read_text())
        shutil.copy(STANDINS / "container.py", folder / "bin")
        shutil.copy(host.keys / "client.pub", folder / "authorized_keys")
        (folder / "boot_id").write_text(f"{uuid.uuid4()}\n")
        here = Path("/run/pvehost")
        config = sshd_config(host.port, here / "keys/host", here / "authorized_keys", settings)
        (folder / "sshd_config").write_text(config)
        host.settle()
        host._add_users()
        return host

    def settle(self, *, pct_delay_s: float = 0.0, lock_timeout_s: float = 10.0) -> None:
        """How slow pct is, and how long it waits for a lock; also of a host that is up."""
        meta: dict[str, Any] = {
            "node": NODE,
            "python": PYTHON,
            "sshd": SSHD,
            "binds": [str(path) for path in self.binds],
            "pct_delay_s": pct_delay_s,
            "lock_timeout_s": lock_timeout_s,
        }
        (self.folder / "meta.json").write_text(json.dumps(meta))

    def trust(self, *public_keys: Path) -> None:
        write_known_hosts(self.keys / "known_hosts", self.port, *public_keys)

    def _add_users(self) -> None:
        lines = [Path("/etc/passwd").read_text().rstrip("\n")]
        for uid, (name, shell) in enumerate(USERS.items(), _FIRST_UID):
            home = self.folder / "home" / name
            home.mkdir(mode=0o700)
            os.chown(home, uid, uid)
            lines.append(f"{name}:*:{uid}:{uid}::/home/{name}:{shell}")
        (self.folder / "etc/passwd").write_text("\n".join([*lines, ""]))
        sudoers = self.folder / "etc/sudoers.d/dflash"
        sudoers.write_text("trusted ALL=(root) NOPASSWD: /usr/sbin/pct, /usr/bin/pvesh, /usr/bin/lxc-info\n")
        sudoers.chmod(0o440)

    def config_file(self, vmid: int, node: str = NODE) -> Path:
        return self.folder / "pve/nodes" / node / "lxc" / f"{vmid}.conf"

    def rootfs(self, vmid: int) -> Path:
        return self.folder / "lxc" / str(vmid) / "rootfs"

    def add_container(self, vmid: int, *, workspace_size: str | None = None) -> None:
        """A stopped container; with a size, /workspace is a disk of its own of that many bytes."""
        small = f"x-workspace-size: {workspace_size}\n" if workspace_size else ""
        self.config_file(vmid).write_text(f"arch: amd64\nhostname: train{vmid}\nmemory: 4096\n{small}")
        root = self.rootfs(vmid)
        for name in _ROOT_FOLDERS:
            (root / name).mkdir(parents=True)
        (root / "tmp").chmod(0o1777)
        (root / "root").chmod(0o700)
        for name in ("bin", "sbin", "lib", "lib64"):
            (root / name).symlink_to(f"usr/{name}")
        for name in ("ld.so.cache", "nsswitch.conf"):
            shutil.copy(Path("/etc", name), root / "etc")
        (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
        (root / "etc/group").write_text("root:x:0:\n")

    def add_elsewhere(self, vmid: int, node: str) -> None:
        """A container that lives on another node of the cluster."""
        file = self.config_file(vmid, node)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"hostname: far{vmid}\nx-elsewhere: 1\n")

    def start(self) -> None:
        argv = ["unshare", "--mount", "--pid", "--fork", "--kill-child", PYTHON, "-I", "-S"]
        with (self.folder / "init.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*argv, str(STANDINS / "host.py"), str(self.folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )
        wait_for_ssh(self.port)

    def stop(self) -> None:
        """All at once, as when the power fails. Containers count as stopped."""
        if self.process:
            os.kill(self._init(), signal.SIGKILL)
            self.process.wait()
            self.process = None
        for note in self.folder.glob("lxc/*/init.pid"):
            note.unlink()

    def reboot(self) -> None:
        """Another boot id, and no container is up."""
        self.stop()
        self.change_boot_id()
        self.start()

    def change_boot_id(self) -> None:
        """Of a host that is off."""
        (self.folder / "boot_id").write_text(f"{uuid.uuid4()}\n")

    def pct(self, *words: str, timeout_s: float = 30) -> subprocess.CompletedProcess[bytes]:
        """What the host's own root says to pct; an error if it fails."""
        argv = ["nsenter", "-t", str(self._init()), "-m", "-p", "/usr/sbin/pct", *words]
        return subprocess.run(argv, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=timeout_s)

    def end_sessions(self, number: int = signal.SIGKILL) -> int:
        """A signal to every process that serves a connection (SIGSTOP: silence); how many there were."""
        found = [pid for pid in self._processes() if _is_session(pid)]
        for pid in found:
            os.kill(pid, number)
        return len(found)

    def stop_listening(self) -> None:
        os.kill(self._init(), signal.SIGUSR1)
        end = time.monotonic() + 30
        while any(b"[listener]" in _command(pid) for pid in self._processes()):
            assert time.monotonic() < end, "the listener stays"
            time.sleep(0.01)

    def listen(self) -> None:
        os.kill(self._init(), signal.SIGUSR2)
        wait_for_ssh(self.port)

    def change_host_key(self, name: str) -> None:
        """Connections from now on are shown the key `name` of `keys`."""
        config = self.folder / "sshd_config"
        lines = [line for line in config.read_text().splitlines() if not line.startswith("HostKey ")]
        config.write_text("\n".join([*lines, f"HostKey /run/pvehost/keys/{name}", ""]))
        self.stop_listening()
        self.listen()

    def freeze(self, vmid: int) -> None:
        """What a backup in suspend mode does: everything stands still, and pct says that it runs."""
        (self.folder / f"lxc/{vmid}/frozen").touch()
        for pid in self.processes_in(vmid):
            os.kill(pid, signal.SIGSTOP)

    def thaw(self, vmid: int) -> None:
        (self.folder / f"lxc/{vmid}/frozen").unlink()
        for pid in self.processes_in(vmid):
            os.kill(pid, signal.SIGCONT)

    def set_lock(self, vmid: int, lock: str | None) -> None:
        file = self.config_file(vmid)
        lines = [line for line in file.read_text().splitlines() if not line.startswith("lock: ")]
        file.write_text("\n".join([*lines, *([f"lock: {lock}"] if lock else []), ""]))

    def config_lock_file(self, vmid: int) -> Path:
        """Whoever holds a flock on it makes `pct push` wait."""
        return self.folder / f"lock/pve-config-{vmid}.lock"

    def processes_in(self, vmid: int) -> list[int]:
        """Every process of a container but its init, by the pids that a test sees."""
        top = (self.folder / f"lxc/{vmid}/init.pid").read_text().split()[0]
        chains = {pid: _pids_by_namespace(pid) for pid in self._processes()}
        [init] = [pid for pid, chain in chains.items() if len(chain) == 3 and chain[1] == top]
        inside = Path(f"/proc/{init}/ns/pid").readlink()
        return [pid for pid in chains if pid != init and _namespace(pid) == inside]

    def _init(self) -> int:
        assert self.process
        return int(Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text())

    def _processes(self) -> list[int]:
        return list(_below(self._init()))


def _write_program(path: Path, text: str) -> None:
    path.write_text(f"#!{PYTHON} -IS\n{text}")
    path.chmod(0o755)


def _below(pid: int) -> Iterator[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in map(int, children):
        yield child
        yield from _below(child)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _is_session(pid: int) -> bool:
    words = _command(pid)
    return words.startswith(b"sshd") and b"[listener]" not in words


def _pids_by_namespace(pid: int) -> list[str]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(line for line in lines if line.startswith("NSpid")).split()[1:]
    except OSError:
        return []


def _namespace(pid: int) -> Path | None:
    try:
        return Path(f"/proc/{pid}/ns/pid").readlink()
    except OSError:
        return None

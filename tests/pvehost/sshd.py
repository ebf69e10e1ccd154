"""A real OpenSSH server on the loopback: its own host key, one user key that may enter, no passwords.

It sees the machine as the tests do, so what a test puts in a folder is there for the far side too. The person's own
start-up files are not read: HOME is an empty folder.
"""

import ctypes
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
_SFTP_SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/sftp-server", "/usr/libexec/openssh/sftp-server")
_PR_SET_PDEATHSIG = 1


def missing_sshd() -> str | None:
    """Why there can be no server here, or None."""
    if not os.access(SSHD, os.X_OK) or not shutil.which("ssh-keygen"):
        return "no OpenSSH server here: apt-get install openssh-server (as root), or the like of your system"
    return None


@dataclass
class SshServer:
    """`keys` holds `host`, `client`, `other` (which nobody authorised) and their .pub, and a right `known_hosts`."""

    folder: Path
    port: int
    user: str
    keys: Path
    settings: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None

    @classmethod
    def make(cls, folder: Path, *settings: str) -> Self:
        """Keys and config below `folder`, on a port that is free; nothing is started yet."""
        keys = folder / "keys"
        keys.mkdir(parents=True, mode=0o700)
        (folder / "home").mkdir()
        for name in ("host", "client", "other"):
            make_key(keys / name)
        server = cls(folder, free_port(), getpass.getuser(), keys, (*settings, f"SetEnv HOME={folder / 'home'}"))
        server.trust(keys / "host.pub")
        return server

    def trust(self, public_key: Path) -> None:
        write_known_hosts(self.keys / "known_hosts", self.port, public_key)

    def start(self) -> None:
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        config = self.folder / "sshd_config"
        words = sshd_config(self.port, self.keys / "host", self.keys / "client.pub", self.settings)
        config.write_text(words)
        argv = [SSHD, "-D", "-f", str(config), "-E", str(self.folder / "sshd.log")]
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        wait_for_ssh(self.port)

    def stop(self) -> None:
        """No new connections; those that are open live on until `end_sessions`."""
        assert self.process
        self.process.terminate()
        self.process.wait()
        self.process = None

    def end_sessions(self, signal_number: int = signal.SIGKILL) -> int:
        """A signal to every process that serves a connection; how many there were."""
        assert self.process
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in children:
            os.kill(int(pid), signal_number)
        return len(children)


def make_key(path: Path, passphrase: str = "") -> None:
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", path.name, "-f", str(path)]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)


def write_known_hosts(file: Path, port: int, *public_keys: Path) -> None:
    lines = [" ".join([f"[127.0.0.1]:{port}", *key.read_text().split()[:2]]) for key in public_keys]
    file.write_text("\n".join([*lines, ""]))


def sshd_config(port: int, host_key: Path, authorized: Path, settings: tuple[str, ...] = ()) -> str:
    """Settings given come first: the first value of a key counts."""
    sftp = next((path for path in _SFTP_SERVERS if os.access(path, os.X_OK)), "internal-sftp")
    lines = [
        *settings,
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {host_key}",
        f"AuthorizedKeysFile {authorized}",
        "StrictModes no",
        "UsePAM no",
        "PermitRootLogin prohibit-password",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PidFile none",
        "LogLevel VERBOSE",
        "AcceptEnv LANG LC_*",
        f"Subsystem sftp {sftp}",
    ]
    return "\n".join([*lines, ""])


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def wait_for_ssh(port: int, timeout_s: float = 60) -> None:
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as one:
                if one.recv(4) == b"SSH-":
                    return
        except OSError:
            pass
        time.sleep(0.01)
    raise TimeoutError(f"no SSH server came up on port {port}")


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


# A test run that is killed leaves no server behind.
die_with_parent = partial(_prctl, _PR_SET_PDEATHSIG, signal.SIGKILL)

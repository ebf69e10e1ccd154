"""Boots one container: mount, pid, uts, ipc and net namespaces of its own, an init that reaps. Words: VMID, config.

Returns when the init is up. A process that nobody waits for stays behind and notes the end.
"""

import ctypes
import json
import os
import subprocess
import sys

STATE = "/run/pvehost"
VMID, CONFIG = sys.argv[1], json.loads(sys.argv[2])
FOLDER = STATE + "/lxc/" + VMID
ROOT = FOLDER + "/rootfs"
with open(STATE + "/meta.json") as _file:
    META = json.load(_file)
READ_ONLY, NO_SUID, NO_DEV, NO_EXEC, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
NEW_NAMESPACES = 0x20000 | 0x4000000 | 0x8000000 | 0x20000000 | 0x40000000
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)

INIT = """
import os, signal
signal.signal(signal.SIGPWR, lambda *a: None); signal.signal(signal.SIGCHLD, lambda *a: None)
mask = [signal.SIGPWR, signal.SIGCHLD]
signal.pthread_sigmask(signal.SIG_BLOCK, mask)
while signal.sigwait(mask) != signal.SIGPWR:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
"""


def mount(source, target, kind=None, flags=0, data=None):
    words = [word if word is None else word.encode() for word in (source, target, kind, data)]
    if libc.mount(words[0], words[1], words[2], flags, words[3]):
        number = ctypes.get_errno()
        raise OSError(number, f"mount {source} on {target}: {os.strerror(number)}")


def bind(source, target, is_read_only=False):
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        open(target, "a").close()
    mount(source, target, None, BIND | RECURSIVE)
    if is_read_only:
        mount(None, target, None, BIND | REMOUNT | READ_ONLY)


def fill_root():
    mount(None, "/", None, RECURSIVE | PRIVATE)
    mount(ROOT, ROOT, None, BIND | RECURSIVE)
    for number, place in enumerate(META["binds"]):
        bind(f"/run/pvehost-binds/{number}", ROOT + place, True)
    for name in ("proc", "sys", "dev", "run", "tmp"):
        os.makedirs(ROOT + "/" + name, exist_ok=True)
    mount("proc", ROOT + "/proc", "proc", NO_SUID | NO_DEV | NO_EXEC)
    # LXC shares its host's.
    mount(STATE + "/boot_id", ROOT + "/proc/sys/kernel/random/boot_id", None, BIND)
    mount("none", ROOT + "/dev", "tmpfs", NO_SUID, "mode=755,size=500k")
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        bind("/dev/" + name, ROOT + "/dev/" + name)
    os.mkdir(ROOT + "/dev/shm")
    mount("none", ROOT + "/dev/shm", "tmpfs", NO_SUID | NO_DEV, "mode=1777")
    os.symlink("/proc/self/fd", ROOT + "/dev/fd")
    mount("none", ROOT + "/run", "tmpfs", NO_SUID | NO_DEV, "mode=755")
    if CONFIG.get("x-workspace-size"):
        mount("none", ROOT + "/workspace", "tmpfs", 0, "size=" + CONFIG["x-workspace-size"])


def become_init(ready):
    name = CONFIG["hostname"].encode()
    libc.sethostname(name, len(name))
    fill_root()
    os.makedirs(ROOT + "/.old", exist_ok=True)
    if libc.syscall(PIVOT_ROOT, ROOT.encode(), (ROOT + "/.old").encode()):
        raise OSError(ctypes.get_errno(), "pivot_root")
    os.chdir("/")
    libc.umount2(b"/.old", 2)
    subprocess.run(["ip", "link", "set", "lo", "up"], stderr=subprocess.DEVNULL, check=False)
    os.write(ready, b"ok")
    os.closerange(3, 256)
    env = {"container": "lxc", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TERM": "linux"}
    os.execve(META["python"], ["init", "-I", "-S", "-c", INIT], env)


def start_time(pid):
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rsplit(b")", 1)[1].split()[19])


def watch(ready):
    """The process that stays: makes the namespaces, starts the init in them, notes it while it lives."""
    if libc.unshare(NEW_NAMESPACES):
        os._exit(1)
    log = os.open(FOLDER + "/boot.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nowhere = os.open("/dev/null", os.O_RDWR)
    for fd in range(3):
        os.dup2(nowhere, fd)
    wait_end, go_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(wait_end, 1)
        try:
            become_init(ready)
        except BaseException as e:
            os.write(log, repr(e).encode())
        os._exit(1)
    note = FOLDER + "/init.pid"
    with open(note + ".new", "w") as file:
        file.write(f"{pid} {start_time(pid)}\n")
    os.rename(note + ".new", note)
    os.close(ready)
    os.write(go_end, b"g")
    os.waitpid(pid, 0)
    os.unlink(note)
    os._exit(0)


def main():
    answer, ready = os.pipe()
    if os.fork() == 0:
        os.close(answer)
        os.setsid()
        if os.fork():
            os._exit(0)
        watch(ready)
    os.close(ready)
    return 0 if os.read(answer, 2) == b"ok" else 1


sys.exit(main())

"""PID 1 of a test host: lays out its file system, starts sshd, reaps. Word: the folder of its state.

SIGUSR1 ends the listener, SIGUSR2 starts another; sessions that are open live on.
"""

import json
import os
import signal
import subprocess
import sys

STATE = "/run/pvehost"


def mount(*words):
    subprocess.run(["mount", *words], check=True)


def lay_out(state):
    with open(state + "/meta.json") as file:
        meta = json.load(file)
    mount("-t", "proc", "proc", "/proc")
    mount("-t", "tmpfs", "-o", "mode=755", "run", "/run")
    for folder in (STATE, "/run/sshd", "/run/lock/lxc"):
        os.makedirs(folder)
    mount("--bind", state, STATE)
    # Before /root, /tmp and /usr/sbin are covered below.
    for number, source in enumerate(meta["binds"]):
        place = f"/run/pvehost-binds/{number}"
        os.makedirs(place)
        mount("--rbind", source, place)
    mount("--bind", STATE + "/boot_id", "/proc/sys/kernel/random/boot_id")
    for place in ("/usr/bin", "/usr/sbin", "/etc"):
        mount("-t", "overlay", "-o", f"ro,lowerdir={STATE}{place}:{place}", "overlay", place)
    for name, place in (("pve", "/etc/pve"), ("root", "/root"), ("home", "/home")):
        mount("--bind", STATE + "/" + name, place)
    mount("-t", "tmpfs", "-o", "mode=1777", "tmp", "/tmp")
    # An interpreter below a home would be covered now.
    for number, source in enumerate(meta["binds"]):
        os.makedirs(source, exist_ok=True)
        if not os.listdir(source):
            mount("--rbind", f"/run/pvehost-binds/{number}", source)
    os.chdir("/")
    return meta


def start_sshd(meta):
    pid = os.fork()
    if pid == 0:
        become_sshd(meta)
    return pid


def become_sshd(meta):
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (signal.SIGCHLD, signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    argv = [meta["sshd"], "-D", "-f", STATE + "/sshd_config", "-E", STATE + "/sshd.log"]
    os.execve(argv[0], argv, {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def main():
    mask = [signal.SIGCHLD, signal.SIGUSR1, signal.SIGUSR2]
    for number in mask:
        signal.signal(number, lambda *_: None)
    meta = lay_out(sys.argv[1])
    signal.pthread_sigmask(signal.SIG_BLOCK, mask)
    sshd = start_sshd(meta)
    while True:
        number = signal.sigwait(mask)
        if number == signal.SIGCHLD:
            reap()
        elif number == signal.SIGUSR1:
            os.kill(sshd, signal.SIGTERM)
        else:
            sshd = start_sshd(meta)


main()

"""Stands in for Proxmox VE's `pct` on a test host: its wording, exit codes, option parsing and side effects.

Rebuilt from pve-container 6.1.10, traps included: push and pull that exit 0 whatever happened, options eaten from
the command, a lock that is waited for. Containers are real namespaces. Runs there as one file, by `python -I -S`.
"""

import ctypes
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time

STATE = "/run/pvehost"
with open(STATE + "/meta.json") as _file:
    META = json.load(_file)
CONFIGS = "{}/pve/nodes/{}/lxc".format(STATE, META["node"])
NAMESPACES = {"mnt": 0x20000, "uts": 0x4000000, "ipc": 0x8000000, "pid": 0x20000000, "net": 0x40000000}
SOURCE = "/usr/share/perl5/PVE/CLI/pct.pm"
FORMAT = "%-10s %-10s %-12s %-20s"
libc = ctypes.CDLL(None, use_errno=True)


class Die(Exception):
    """What Perl's `die` does here: the text on stderr, exit code 255."""


def die(text):
    raise Die(text if text.endswith("\n") else f"{text} at {SOURCE} line 1.\n")


# Getopt::Long as it is by default: `--` and `-` are prefixes, options may stand anywhere, abbreviations will do.
def parse(words, positional, options, flags, takes_extra):
    known = dict.fromkeys([*options, *positional, *(["extra-args"] if takes_extra else [])], False)
    known.update(dict.fromkeys(flags, True))
    values, rest, bad = {}, [], ""
    words = list(words)
    while words:
        word = words.pop(0)
        if word == "--":
            rest += words
            break
        match = re.match(r"(?:--|-)([^=]+)(?:=(.*))?$", word, re.S)
        if not match:
            rest.append(word)
            continue
        name, value = match.group(1), match.group(2)
        hits = [key for key in known if key == name.lower()] or [key for key in known if key.startswith(name.lower())]
        if len(hits) != 1:
            bad += "Option {} is ambiguous ({})\n".format(name, ", ".join(sorted(hits))) if hits else ""
            bad += "" if hits else f"Unknown option: {name}\n"
        elif value is not None:
            values[hits[0]] = value
        elif known[hits[0]]:
            values[hits[0]] = words.pop(0) if words and not words[0].startswith("-") else ""
        elif words:
            values[hits[0]] = words.pop(0)
        else:
            bad += f"Option {hits[0]} requires an argument\n"
    if bad:
        sys.stderr.write(bad)
        raise Die("400 unable to parse option\n")
    for name in positional:
        if not rest:
            raise Die("400 not enough arguments\n")
        values[name] = rest.pop(0)
    if rest and not takes_extra:
        raise Die("400 too many arguments\n")
    values["extra-args"] = rest
    for name in flags:
        values[name] = truth(values[name]) if name in values else None
    if "vmid" in positional:
        check_vmid(values["vmid"])
    return values


def truth(word):
    if word.lower() in ("", "1", "on", "yes", "true"):
        return True
    if word.lower() in ("0", "off", "no", "false"):
        return False
    raise Die("400 unable to parse boolean option\n")


def check_vmid(word):
    why = ""
    if not re.fullmatch(r"-?\d+", word):
        why = f"vmid: type check ('integer') failed - got '{word}'\n"
    elif not re.fullmatch(r"[1-9][0-9]{2,8}", word):
        why = "vmid: invalid format - value does not look like a valid VM ID\n\n"
    if why:
        raise Die("400 Parameter verification failed.\n" + why)


def load_config(vmid):
    try:
        with open(f"{CONFIGS}/{vmid}.conf") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        die("Configuration file 'nodes/{}/lxc/{}.conf' does not exist\n".format(META["node"], vmid))
    return dict(line.split(": ", 1) for line in lines if ": " in line and not line.startswith("#"))


def start_time(pid):
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rsplit(b")", 1)[1].split()[19])


def init_pid(vmid):
    """The host's pid of the container's init, None if it does not run."""
    try:
        with open(f"{STATE}/lxc/{vmid}/init.pid") as file:
            pid, started = map(int, file.read().split())
        return pid if start_time(pid) == started else None
    except (OSError, ValueError, IndexError):
        return None


class ConfigLock:
    """The lock of one container's config, waited for as long as pct waits."""

    def __init__(self, vmid):
        self.vmid = vmid

    def __enter__(self):
        self.file = open(f"{STATE}/lock/pve-config-{self.vmid}.lock", "a")
        said, end = False, time.monotonic() + META["lock_timeout_s"]
        while True:
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not said:
                    sys.stderr.write("trying to acquire lock...\n")
                    sys.stderr.flush()
                    said = True
                if time.monotonic() > end:
                    die(f"can't lock file '/run/lock/lxc/pve-config-{self.vmid}.lock' - got timeout\n")
                time.sleep(0.02)
        if said:
            sys.stderr.write(" OK\n")

    def __exit__(self, *exc):
        self.file.close()


def check_lock(config):
    if config.get("lock"):
        die("CT is locked ({})\n".format(config["lock"]))


def task(work):
    """A worker of pct: a session of its own, stderr where stdout goes, only its last error on ours."""
    read_end, write_end = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        code = 0
        try:
            os.setsid()
            os.dup2(1, 2)
            work()
        except Die as e:
            os.write(write_end, str(e).strip().replace("\n", " ").encode())
            code = 255
        except BaseException as e:
            os.write(write_end, repr(e).encode())
            code = 255
        sys.stdout.flush()
        os._exit(code)
    os.close(write_end)
    message = b"".join(iter(lambda: os.read(read_end, 4096), b""))
    os.close(read_end)
    _, status = os.waitpid(pid, 0)
    if message:
        sys.stderr.write(message.decode() + "\n")
    return status == 0


def do_list(words):
    ids = sorted(int(name[:-5]) for name in os.listdir(CONFIGS) if re.fullmatch(r"\d+\.conf", name))
    if ids:
        print(FORMAT % ("VMID", "Status", "Lock", "Name"))
    for vmid in ids:
        config = load_config(str(vmid))
        name = re.sub(r"\s", "", config.get("hostname") or f"CT{vmid}")
        print(FORMAT % (vmid, "running" if init_pid(vmid) else "stopped", config.get("lock", ""), name))
    return 0


def do_status(words):
    load_config(words["vmid"])
    print("status:", "running" if init_pid(words["vmid"]) else "stopped")
    return 0


def do_config(words):
    config = load_config(words["vmid"])
    for key in sorted(config):
        print(f"{key}: {config[key]}")
    return 0


def do_start(words):
    vmid = words["vmid"]
    if init_pid(vmid):
        die(f"CT {vmid} already running\n")

    def work():
        with ConfigLock(vmid):
            config = load_config(vmid)
            check_lock(config)
            argv = [META["python"], "-I", "-S", STATE + "/bin/container.py", vmid, json.dumps(config)]
            if subprocess.run(argv, stdin=subprocess.DEVNULL).returncode:
                die(f"startup for container '{vmid}' failed\n")

    return 0 if task(work) else 255


def do_stop(words):
    vmid = words["vmid"]
    if not init_pid(vmid):
        die(f"CT {vmid} not running\n")

    def work():
        with ConfigLock(vmid):
            check_lock(load_config(vmid))
            os.kill(init_pid(vmid), signal.SIGKILL)
            end = time.monotonic() + 60
            while init_pid(vmid):
                if time.monotonic() > end:
                    die("container did not stop\n")
                time.sleep(0.02)

    return 0 if task(work) else 255


def enter_namespaces(pid, names):
    for name, fd in [(name, os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY)) for name in names]:
        if libc.setns(fd, NAMESPACES[name]):
            die(f"failed to enter the container's {name} namespace\n")
        os.close(fd)


def do_exec(words):
    vmid = words["vmid"]
    load_config(vmid)
    if not init_pid(vmid):
        die(f"container '{vmid}' not running!\n")
    if not words["extra-args"]:
        die("missing command")
    keeps_environment = words["keep-env"] is None or words["keep-env"]
    attach(vmid, keeps_environment, words["extra-args"])


def do_enter(words):
    vmid = words["vmid"]
    load_config(vmid)
    if not init_pid(vmid):
        die(f"container '{vmid}' not running!\n")
    keeps_environment = words["keep-env"] is None or words["keep-env"]
    # Of root's own shell lxc-attach asks the container, and falls back on this one.
    attach(vmid, keeps_environment, ["/bin/sh"])


def attach(vmid, keeps_environment, argv):
    """What lxc-attach does: enter, keep the three streams, the folder and the process group, pass the status on."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores them; pct does not.
    while os.path.exists(f"{STATE}/lxc/{vmid}/frozen"):
        time.sleep(0.05)
    pid, folder = init_pid(vmid), os.getcwd()
    enter_namespaces(pid, ["net", "uts", "ipc", "pid", "mnt"])
    try:
        os.chdir(folder)
    except OSError:
        os.chdir("/")
    child = os.fork()
    if child == 0:
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        env = {**ENVIRONMENT, "PATH": os.environ["PATH"]} if keeps_environment else {"PATH": path}
        env["container"] = "lxc"
        try:
            os.execvpe(argv[0], argv, env)
        except OSError as e:
            where = f"lxc-attach: {vmid}: ../src/lxc/attach.c: lxc_attach_run_command: 1841 "
            sys.stderr.write(f'{where}{e.strerror} - Failed to exec "{argv[0]}"\n')
            sys.stderr.flush()
            os._exit({2: 127, 13: 126, 8: 126}.get(e.errno, 255))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    _, status = os.waitpid(child, 0)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def create_file(path, perms):
    mode = None
    if perms is not None:
        digits = perms if perms.startswith("0") else "0" + perms
        mode = int(digits, 16) if digits.lower().startswith("0x") else int(digits, 8)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0)
        if mode is None:
            mask = os.umask(0)
            os.umask(mask)
            mode = 0o666 & ~mask
    except OSError:
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        except OSError as e:
            die(f"failed to create file: {path}: {e.strerror}\n")
    if mode is not None:
        os.fchmod(fd, mode)
    return fd


def copy(source, target):
    """Nobody looks at whether this went well: a full disk leaves a short file and no word."""
    try:
        while True:
            piece = os.read(source, 1 << 20)
            if not piece:
                return
            while piece:
                piece = piece[os.write(target, piece) :]
    except OSError:
        pass


def do_push(words):
    vmid = words["vmid"]
    with ConfigLock(vmid):
        if not init_pid(vmid):
            die("can only push files to a running CT\n")

        def work():
            try:
                source = os.open(words["file"], os.O_RDONLY)
            except OSError:
                die("failed to open {} for reading\n".format(words["file"]))
            enter_namespaces(init_pid(vmid), ["mnt"])
            os.chdir("/")
            copy(source, create_file(words["destination"], words.get("perms")))

        task(work)
    return 0


# Name: what does it, its positional words, its options, its flags, whether it takes a command.
COMMANDS = {
    "list": (do_list, [], [], [], False),
    "status": (do_status, ["vmid"], [], ["verbose"], False),
    "config": (do_config, ["vmid"], [], ["current"], False),
    "start": (do_start, ["vmid"], [], ["skiplock"], False),
    "stop": (do_stop, ["vmid"], [], ["skiplock"], False),
    "enter": (do_enter, ["vmid"], [], ["keep-env"], False),
    "exec": (do_exec, ["vmid"], [], ["keep-env"], True),
    "push": (do_push, ["vmid", "file", "destination"], ["user", "group", "perms"], [], False),
}


def locale_decoded(word):
    """Perl reads its words in the locale: outside of UTF-8, whatever is not ASCII is lost."""
    raw = os.fsencode(word)
    is_utf8 = "UTF-8" in (os.environ.get("LC_ALL") or os.environ.get("LANG") or "").upper()
    return raw.decode("utf-8" if is_utf8 else "ascii", "replace")


def main(words):
    if os.geteuid() != 0:
        sys.stderr.write("please run as root\n")
        return 255
    os.environ["PATH"] = "/sbin:/bin:/usr/sbin:/usr/bin"
    time.sleep(META["pct_delay_s"])
    hits = [name for name in COMMANDS if words and name.startswith(words[0])]
    if len(hits) != 1:
        name = words[0] if words else ""
        sys.stderr.write(f"ERROR: unknown command 'pct {name}'\nUSAGE: pct <COMMAND> [ARGS] [OPTIONS]\n")
        return 255
    work, *grammar = COMMANDS[hits[0]]
    try:
        return work(parse([locale_decoded(word) for word in words[1:]], *grammar)) or 0
    except Die as e:
        sys.stdout.flush()
        sys.stderr.write(str(e))
        if str(e).startswith("400 "):
            words = "".join(f" <{name}>" for name in grammar[0])
            sys.stderr.write("pct {}{}{} [OPTIONS]\n".format(hits[0], words, " [<extra-args>]" if grammar[3] else ""))
        return 255


# Not os.environ: in the C locale Python adds a word of its own.
with open("/proc/self/environ", errors="surrogateescape") as _file:
    ENVIRONMENT = dict(entry.split("=", 1) for entry in _file.read().split("\0") if "=" in entry)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

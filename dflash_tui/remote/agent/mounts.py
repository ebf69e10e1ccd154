"""What kind of file system a path is on, whether only this machine writes there, and whether it takes anything."""

from __future__ import annotations

import os
from typing import Optional

# Those of which nobody else changes a file behind this kernel's back. Of any other kind the opposite is believed. FAT
# is none of them: who puts an old time back leaves no trace there.
_LOCAL = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "tmpfs", "ramfs", "overlay")

LAST_WORDS_BYTES = 16384


def file_system(path: str) -> Optional[str]:
    """The kind of the mount that `path` is on. By the mount's number: of two at one place, its path tells neither."""
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            with open("/proc/self/fdinfo/%d" % fd, "rb") as f:
                [number] = [line.split()[1] for line in f if line.startswith(b"mnt_id:")]
        finally:
            os.close(fd)
        with open("/proc/self/mountinfo", "rb") as f:
            mounts = [line.split(b" ") for line in f]
        [mount] = [fields for fields in mounts if fields[0] == number]
        return os.fsdecode(mount[mount.index(b"-") + 1])
    except (OSError, ValueError, IndexError):
        return None


def is_local(path: str) -> bool:
    return file_system(path) in _LOCAL


def is_full(path: str) -> bool:
    """Whether there is no room even for the last words of a trainer."""
    try:
        found = os.statvfs(path)
    except OSError:
        return False
    blocks = found.f_bavail if os.getuid() else found.f_bfree
    return blocks * found.f_frsize < LAST_WORDS_BYTES or (found.f_files > 0 and found.f_favail == 0)


def is_read_only(path: str) -> bool:
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False

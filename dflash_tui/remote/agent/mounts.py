"""What kind of file system a path is on, and whether only this machine writes there."""

from __future__ import annotations

import os
from typing import Optional

# Those of which nobody else changes a file behind this kernel's back. Of any other kind the opposite is believed.
_LOCAL = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "tmpfs", "ramfs", "overlay", "vfat")


def file_system(path: str) -> Optional[str]:
    """The kind of the mount that `path` is on: the last one mounted over the longest prefix of it."""
    path = os.path.realpath(path)
    found, longest = None, -1
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as f:
            for line in f:
                fields = line.split(" ")
                # A blank in a path is written as its octal number.
                place = fields[4].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
                if (path + "/").startswith(place.rstrip("/") + "/") and len(place) >= longest:
                    found, longest = fields[fields.index("-") + 1], len(place)
    except (OSError, ValueError, IndexError):
        return None
    return found


def is_local(path: str) -> bool:
    return file_system(path) in _LOCAL

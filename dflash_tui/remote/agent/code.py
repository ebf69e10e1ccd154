"""Code that was pushed: one folder for each content, named by its hash, unpacked whole or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import tarfile
import tempfile
from typing import Any, Dict, Iterator, Tuple

from .errors import Refused
from .folder import CODE, absolute, check_ours, make_private, remove

MAX_BYTES = 1 << 30


def find(op: Dict[str, Any]) -> Dict[str, Any]:
    """Where the code with hash `sha256` lies or would lie (`path`), if it is there, and where to put its `archive`.

    Each asker gets another place for the archive: two may send the same code at once.
    """
    path = _path(op)
    there = os.path.isdir(path)
    if there:
        check_ours(path)
        if tree_hash(path) != op["sha256"]:
            raise Refused("%s does not hold what its name says: remove it, then try again" % path)
    return {"there": there, "path": path, "archive": "%s.%s.tar" % (path, secrets.token_hex(4))}


def unpack(op: Dict[str, Any]) -> Dict[str, Any]:
    """Make the folder of `sha256` from its `archive`, which is removed. Refused if its content has another hash.

    Members are plain files and folders with plain relative names; anything else is refused before it is written.
    """
    path, archive = _path(op), op["archive"]
    if not re.fullmatch(re.escape(path) + r"\.[0-9a-f]{8}\.tar", archive):
        raise Refused("%r is no place for an archive of this code" % archive)
    part = tempfile.mkdtemp(prefix="part.", dir=os.path.dirname(path))
    try:
        _extract(archive, part)
        if tree_hash(part) != op["sha256"]:
            raise Refused("the code that arrived is not the code that was sent: try again")
        _rename_unless_there(part, path)
    except (tarfile.TarError, EOFError) as e:
        raise Refused("the code that arrived is no archive (%s): try again" % e) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
        remove(archive)
    return {"path": path}


def tree_hash(root: str) -> str:
    """sha256 over the names and contents of all files below `root`, without what Python compiles there."""
    total = hashlib.sha256()
    for name, path in sorted(_files(root)):
        with open(path, "rb") as f:
            content = hashlib.sha256(f.read()).hexdigest()
        total.update(b"%s\0%s\n" % (os.fsencode(name), content.encode()))
    return total.hexdigest()


def _rename_unless_there(part: str, path: str) -> None:
    try:
        os.rename(part, path)
    except OSError:
        # Somebody else sent the same content first.
        if not os.path.isdir(path):
            raise


def _path(op: Dict[str, Any]) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", str(op["sha256"])):
        raise Refused("%r is no hash of code" % op["sha256"])
    root = os.path.join(absolute(op["workdir"]), CODE)
    make_private(root)
    return os.path.join(root, op["sha256"])


def _files(root: str) -> Iterator[Tuple[str, str]]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            path = os.path.join(folder, name)
            yield os.path.relpath(path, root), path


def _extract(archive: str, into: str) -> None:
    with tarfile.open(archive, "r:") as tar:
        total = 0
        for member in tar:
            parts = member.name.split("/")
            total += member.size
            if not member.isfile() or total > MAX_BYTES or any(part in ("", ".", "..") for part in parts):
                raise Refused(
                    "the code that arrived holds %r, which is no plain file of it: nothing was kept" % member.name
                )
            target = os.path.join(into, *parts)
            os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
            source: Any = tar.extractfile(member)
            with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
                shutil.copyfileobj(source, f)
                f.flush()
                os.fsync(f.fileno())

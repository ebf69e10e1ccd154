"""What is pushed, as bytes: the agent as one file that Python runs, and a folder of code as one archive.

The same content gives the same bytes on every machine, so that its hash can be its name.
"""

import hashlib
import io
import os
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_PACKAGE = "dflash_agent"
_MAIN = f"import sys\n\nfrom {_PACKAGE}.serve import main\n\nmain(sys.argv)\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Bundle:
    """`sha256` is that of the names and contents, as `remote/agent/code.py` computes it from the unpacked folder."""

    sha256: str
    archive: bytes


@cache
def agent_file() -> bytes:
    """The agent: a zip archive with a `__main__`, which Python runs like a script."""
    out = io.BytesIO()
    # Stored, not deflated: the far side's Python may lack zlib.
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as pack:
        pack.writestr(zipfile.ZipInfo("__main__.py", _EPOCH), _MAIN)
        for name, file in _files(Path(__file__).parent / "agent"):
            pack.writestr(zipfile.ZipInfo(f"{_PACKAGE}/{name}", _EPOCH), file.read_bytes())
    return out.getvalue()


def boot_program() -> bytes:
    return (Path(__file__).parent / "boot.py").read_bytes()


def pack(folder: Path, name: str) -> Bundle:
    """The files of `folder` as an archive that unpacks to `<name>/...`, without hidden and compiled ones."""
    total = hashlib.sha256()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for relative, file in _files(folder):
            member = tarfile.TarInfo(f"{name}/{relative}")
            content = file.read_bytes()
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
            total.update(b"%s\0%s\n" % (os.fsencode(member.name), hashlib.sha256(content).hexdigest().encode()))
    return Bundle(total.hexdigest(), out.getvalue())


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Relative name and path of every file worth pushing, sorted by name."""
    files = {file.relative_to(folder): file for file in folder.rglob("*") if file.is_file()}
    for relative, file in sorted(files.items(), key=lambda item: item[0].as_posix()):
        if not any(part.startswith(".") or part == "__pycache__" for part in relative.parts):
            yield relative.as_posix(), file

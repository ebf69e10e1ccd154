"""A log on this machine -> the bytes that its run's mirror gets. What `ingest` does before anything is parsed.

A packed log is unpacked and a JSON document laid out as lines, into a temporary file without a name: all that follows
sees plain lines. Which bytes of a mirror came from which file is kept beside it (held.py), so nothing comes twice.
"""

import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from dflash_tui import paths
from dflash_tui.errors import UsageError
from dflash_tui.runs import given_run_id
from dflash_tui.store.shapes import detect, documents, packing

_HEAD_BYTES = 1 << 20
_BLOCK_BYTES = 4 << 20
_PACKED_BYTES = 256 << 10
# The most that a document may have: it is read as a whole.
_MAX_DOCUMENT_BYTES = 256 << 20
# Logs shrink 5 to 50 times. What unpacks to more than this many times its size is no log; deflate's own limit is 1032.
_MAX_RATIO = 250
_FREE_BYTES = 64 << 20
_PART = re.compile(r"(?P<base>.*?)(?:\.(?P<number>\d{1,3})|[-.](?P<date>\d{4}-?\d\d-?\d\d[-_T.:\d]*))?(?P<gz>\.gz)?")


class Part(NamedTuple):
    """Where a file stands among those that one log was cut into: sorted, the oldest comes first."""

    folder: Path
    base: str
    age: tuple[int, int, str]


def part_of(file: Path) -> Part:
    """Of `train.jsonl.2.gz` the base is `train.jsonl`, and so it is of `train.jsonl.1` and `train.jsonl-20260102`."""
    match = _PART.fullmatch(file.name)
    if not match or not (base := match["base"]) or not re.search(r"\.|log$|out$", base):
        return Part(file.parent, file.name, (2, 0, ""))
    if match["number"]:
        return Part(file.parent, base, (0, -int(match["number"]), ""))
    if match["date"]:
        return Part(file.parent, base, (1, 0, re.sub(r"\D", "", match["date"])))
    return Part(file.parent, base, (2, 0 if match["gz"] else 1, ""))


def runs_of(files: Sequence[Path], run: str | None) -> list[tuple[Path, str]]:
    """Which run each file belongs to: all to `run`, else to one of its own name. In the order given, but the parts of
    one log together, the oldest first. UsageError for two logs of one name, or a name that no run can have."""
    groups: dict[tuple[Path, str], list[Path]] = {}
    for file in files:
        part = part_of(file)
        groups.setdefault((part.folder, part.base), []).append(file)
    jobs = []
    named: dict[str, Path] = {}
    for (_, base), parts in groups.items():
        run_id = given_run_id(run or Path(base).stem)
        if not run and named.setdefault(run_id, parts[0]) != parts[0]:
            raise UsageError(
                f"{named[run_id]} and {parts[0]} would both be the run {run_id}: ingest each with its --run"
            )
        jobs += [(file, run_id) for file in sorted(parts, key=lambda file: part_of(file).age)]
    return jobs


@dataclass(slots=True)
class Log:
    """An open log as its mirror will have it: `size` bytes of lines. `notes` tell what was not as it should be."""

    file: Path
    lines: IO[bytes]
    size: int
    shape: str
    notes: list[str] = field(default_factory=list)


@contextmanager
def open_log(
    file: Path, asked: str | None = None, held: str | None = None, go_on: Callable[[], None] = lambda: None
) -> Iterator[Log]:
    """`file`, read as the shape that was `asked` for, else as the one that its run holds, else as it looks. `go_on` is
    called now and then; what it raises ends the reading.

    UsageError when it cannot be read, or as another shape than its run holds.
    """
    try:
        with file.open("rb") as raw:
            notes: list[str] = []
            go_on()
            lines = _unpacked(file, raw, notes, go_on) if raw.read(2) == packing.GZIP else raw
            lines.seek(0)
            head = lines.read(_HEAD_BYTES)
            if reason := packing.objection(head):
                raise UsageError(f"{file}: {reason}")
            shape = _shape(file, head, asked, held)
            if shape == "trainer_state":
                lines = _laid_out(file, lines)
            with lines:
                yield Log(file, lines, lines.seek(0, 2), shape, notes)
    except OSError as e:
        raise UsageError(f"{file}: cannot be read ({e.strerror or e})") from e


def _shape(file: Path, head: bytes, asked: str | None, held: str | None) -> str:
    is_document = documents.is_document(head)
    shape = asked or ("trainer_state" if is_document else held or detect(head))
    if held is not None and shape != held:
        raise UsageError(f"{file}: is a log of shape {shape}, and its run holds one of {held}; choose another --run")
    if shape == "trainer_state" and not is_document:
        raise UsageError(f"{file}: is no JSON document with a log_history; leave out --as, or choose another --run")
    return shape


def _unpacked(file: Path, packed: IO[bytes], notes: list[str], go_on: Callable[[], None]) -> IO[bytes]:
    """The content of a gzip file. What stands before a cut or a damage is taken; too much of it is refused."""
    unpacked = TemporaryFile(dir=paths.private_dir(paths.mirrors_dir()))  # noqa: SIM115 - handed on
    try:
        is_whole = _unpack(packed, unpacked, go_on)
    except _UnlikelyError:
        unpacked.close()
        raise UsageError(
            f"{file}: unpacks to more than {_MAX_RATIO} times its size, which logs do not; unpack it first if it is one"
        ) from None
    size = unpacked.tell()
    if not is_whole and not size:
        unpacked.close()
        raise UsageError(f"{file}: is a damaged gzip file: nothing of it can be read")
    if not is_whole:
        notes.append(f"the gzip file is cut off or damaged: the first {size:,} bytes of its content could be read")
    return unpacked


class _UnlikelyError(Exception):
    """No log shrinks so much."""


def _unpack(packed: IO[bytes], sink: IO[bytes], go_on: Callable[[], None]) -> bool:
    """Unpack a block at a time; whether the end is there. Several packed files may be joined."""
    packed.seek(0)
    stream = zlib.decompressobj(31)
    is_whole = False
    while block := packed.read(_PACKED_BYTES):
        go_on()
        while block:
            before = stream.copy()
            try:
                data = stream.decompress(block, _BLOCK_BYTES)
            except zlib.error:
                sink.write(_before_damage(before, block))
                return False
            if sink.tell() + len(data) > max(_FREE_BYTES, _MAX_RATIO * packed.tell()):
                raise _UnlikelyError
            sink.write(data)
            block, is_whole = stream.unconsumed_tail, stream.eof
            if is_whole:
                # NULs behind the last one are padding.
                block = stream.unused_data.lstrip(b"\0")
                stream = zlib.decompressobj(31)
    return is_whole


def _before_damage(stream: Any, block: bytes) -> bytes:
    """What a block still gives before the place where it cannot be unpacked."""
    data = b""
    with suppress(zlib.error):
        for at in range(0, len(block), 64):
            data += stream.decompress(block[at : at + 64], _BLOCK_BYTES)
    return data


def _laid_out(file: Path, document: IO[bytes]) -> IO[bytes]:
    """The records of a document, one a line."""
    with document:
        if document.seek(0, 2) > _MAX_DOCUMENT_BYTES:
            raise UsageError(f"{file}: is a document of more than {_MAX_DOCUMENT_BYTES >> 20} MiB; make it JSON lines")
        document.seek(0)
        text = document.read().decode(errors="replace")
    lines = TemporaryFile(dir=paths.private_dir(paths.mirrors_dir()))  # noqa: SIM115 - handed on
    try:
        for record in documents.unroll(text):
            lines.write(record.encode(errors="replace") + b"\n")
    except (ValueError, RecursionError) as e:
        lines.close()
        where = f" at line {e.lineno}: {e.msg}" if isinstance(e, json.JSONDecodeError) else f": {e}"
        raise UsageError(f"{file}: is no whole JSON document{where}; copy it again when nobody writes it") from e
    return lines

"""The byte-exact local copy of what a run wrote: `mirrors/<run_id>/`, the truth that the database is made from.

    run.json  events.jsonl  gpus.jsonl  alerts.jsonl  sources.json
    train_log.jsonl  train_log.<g>.jsonl  attempts/<n>/output.log  *.inode

A stream is a path in that folder that grows as the far file does. When the far file was rotated, truncated or
rewritten, the copy is kept under its generation's number and a fresh one begins. The size of a copy is the offset to
read on from, so that no crash can make a cursor claim bytes that are not there. Only the owner of the store writes.
"""

import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, TypeVar

import msgspec

from dflash_tui import paths
from dflash_tui.errors import DflashError, UsageError
from dflash_tui.runs import Cursor, GpuSample, RunEvent, RunRecord, is_run_id

TRAIN_LOG: Final = "train_log.jsonl"
_STREAM = re.compile(r"train_log\.jsonl|attempts/[1-9][0-9]{0,5}/output\.log")
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_ANCHOR_BYTES = 64
_INODE_BYTES = 32
# A folder that was changed since may be changed once more within one tick of its file system's clock.
_SETTLED_NS = 2_000_000_000
T = TypeVar("T")
_BLOCK_BYTES = 4 << 20
# At once in the kernel: a Ctrl-C waits for its end.
_COPY_BYTES = 64 << 20


def anchor(tail: bytes) -> str:
    """What stands for the bytes before an offset: 16 hex digits of the sha1 of the last 64 of them; none for none."""
    return hashlib.sha1(tail[-_ANCHOR_BYTES:], usedforsecurity=False).hexdigest()[:16] if tail else ""


def mirrored_runs() -> list[str]:
    """The run ids that have a mirror on this machine."""
    folder = paths.mirrors_dir()
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and is_run_id(entry.name))


class Mirror:
    """One run's folder of copies. UsageError when `run_id` may not name a folder."""

    def __init__(self, run_id: str) -> None:
        if not is_run_id(run_id):
            raise UsageError(f"{run_id!r} cannot name a run: lower-case letters, digits, '.', '_' and '-' only")
        self.run_id = run_id
        self.folder = paths.mirrors_dir() / run_id
        self._record = self.folder / "run.json"
        # Kept, since naming a place takes longer than writing there; and with it the inode that is noted beside.
        self._copies: dict[str, Path] = {}
        self._inodes: dict[str, int | None] = {}
        self._older: dict[str, tuple[int, list[tuple[int, Path]]]] = {}

    def exists(self) -> bool:
        """Whether it is that of a run that was registered, and not forgotten."""
        return self._record.exists()

    def write_record(self, record: RunRecord) -> None:
        text = msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"
        with self._writing(self._record) as file:
            _replace(file, text)

    def read_record(self) -> RunRecord | None:
        """What is known of the run; None if nobody registered it, DflashError if the file cannot be read."""
        file = self._record
        try:
            return msgspec.json.decode(file.read_bytes(), type=RunRecord)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as e:
            raise DflashError(f"{file}: is no record of a run ({e}); write it again, or remove the folder") from e

    def append_event(self, event: RunEvent) -> None:
        self._append_lines("events.jsonl", [event])

    def events(self) -> Iterator[RunEvent]:
        """The events, oldest first. A torn line is passed over: what it told is in the next one."""
        return self._read_lines("events.jsonl", RunEvent)

    def append_gpus(self, samples: Sequence[GpuSample]) -> None:
        self._append_lines("gpus.jsonl", samples)

    def gpus(self) -> Iterator[GpuSample]:
        return self._read_lines("gpus.jsonl", GpuSample)

    def append_alert(self, name: str) -> None:
        """A warning was told to people, under what makes it the same one next time."""
        self._append_lines("alerts.jsonl", [name])

    def alerts(self) -> Iterator[str]:
        return self._read_lines("alerts.jsonl", str)

    def _append_lines(self, name: str, values: Sequence[RunEvent | GpuSample | str]) -> None:
        with self._writing(self.folder / name) as file, file.open("ab+") as lines:
            # A crash may have left half a line: it must not swallow this one.
            size = lines.seek(0, os.SEEK_END)
            torn = size > 0 and os.pread(lines.fileno(), 1, size - 1) != b"\n"
            lines.write(b"\n" * torn + b"".join(msgspec.json.encode(value) + b"\n" for value in values))

    def _read_lines(self, name: str, kind: type[T]) -> Iterator[T]:
        file = self.folder / name
        if not file.exists():
            return
        for line in file.read_bytes().splitlines():
            try:
                yield msgspec.json.decode(line, type=kind)
            except msgspec.MsgspecError:
                continue

    def remove(self) -> None:
        """All of it. Killed in between, it is no run's any more, and goes with the next one."""
        aside = f".forgotten-{secrets.token_hex(4)}"
        try:
            if self.folder.is_dir():
                self.folder.rename(self.folder.with_name(aside))
            for left in paths.mirrors_dir().glob(".forgotten-*"):
                shutil.rmtree(left)
        except OSError as e:
            raise DflashError(f"{e.filename or self.folder}: cannot be removed ({e.strerror})") from e

    def path(self, stream: str, generation: int | None = None) -> Path:
        """Where a generation of `stream` lies; None is the newest."""
        file = self._copies.get(stream)
        if file is None:
            if not _STREAM.fullmatch(stream):
                raise UsageError(f"{stream!r} is no stream of a run: {TRAIN_LOG} and attempts/<n>/output.log are")
            file = self._copies[stream] = self.folder / stream
        if generation is None:
            return file
        aside = file.with_name(f"{file.stem}.{generation}{file.suffix}")
        return aside if aside.exists() else file

    def older(self, stream: str) -> list[tuple[int, Path]]:
        """The generations that were set aside, oldest first."""
        file = self.path(stream)
        # Asked at every poll of every run: pathlib takes ten times as long.
        folder, name = os.path.split(file)
        now_ns = time.time_ns()
        try:
            changed_ns = os.stat(folder).st_mtime_ns  # noqa: PTH116
            known = self._older.get(stream)
            if known and known[0] == changed_ns:
                return known[1]
            names = os.listdir(folder)  # noqa: PTH208
        except FileNotFoundError:
            return []
        stem, _, suffix = name.rpartition(".")
        begin, end = f"{stem}.", f".{suffix}"
        middles = {one: one[len(begin) : -len(end)] for one in names if one.startswith(begin) and one.endswith(end)}
        found = sorted((int(m), file.with_name(one)) for one, m in middles.items() if _NUMBER.fullmatch(m))
        if now_ns - changed_ns > _SETTLED_NS:
            self._older[stream] = (changed_ns, found)
        return found

    def size(self, stream: str, generation: int | None = None) -> int:
        """Bytes that are here of a generation of `stream`."""
        try:
            return self.path(stream, generation).stat().st_size
        except FileNotFoundError:
            return 0

    def cursor(self, stream: str) -> Cursor:
        """How much of the far file is here."""
        file = self.path(stream)
        try:
            with _opened(file) as copy:
                size = os.fstat(copy).st_size
                tail = os.pread(copy, _ANCHOR_BYTES, max(0, size - _ANCHOR_BYTES))
        except FileNotFoundError:
            return Cursor()
        return Cursor(size, self._read_inode(file), anchor(tail)) if size else Cursor()

    def append(self, stream: str, data: bytes, cursor: Cursor) -> None:
        """Add what was read; `cursor` says where the far file stands after it. DflashError when that does not fit."""
        file = self.path(stream)
        with self._writing(file), _opened(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as copy:
            size = os.fstat(copy).st_size
            if cursor.offset != size + len(data):
                raise DflashError(
                    f"{file}: holds {size} bytes, so {len(data)} more cannot end at {cursor.offset}; read it again"
                )
            # Of an empty one, which may be that of a run that was forgotten and came again, nothing is believed.
            if not size or stream not in self._inodes:
                self._inodes[stream] = self._read_inode(file)
            if cursor.inode != self._inodes[stream]:
                # Before the bytes: after a crash between the two, no byte is claimed for the wrong file.
                _replace(_inode_file(file), str(cursor.inode or "").encode())
                self._inodes[stream] = cursor.inode
            while data:
                data = data[os.write(copy, data) :]

    def append_file(self, stream: str, source: IO[bytes], begin: int) -> None:
        """Add all that a file on this machine holds from byte `begin` on."""
        with self._writing(self.path(stream)) as file, file.open("ab") as copy:
            _copy_rest(source, begin, copy)

    def start_generation(self, stream: str, reason: str) -> int:
        """Set the copy aside and begin a fresh one. Returns the number of the generation that begins."""
        file = self.path(stream)
        number = self.generation(stream)
        if not self.size(stream):
            return number
        said = f"{stream} was {reason}: generation {number + 1} begins"
        self.append_event(RunEvent(time.time(), "note", text=said))
        with self._writing(file):
            file.rename(file.with_name(f"{file.stem}.{number}{file.suffix}"))
        return number + 1

    def generation(self, stream: str) -> int:
        """The number of the newest generation, from 1."""
        return 1 + max((number for number, _ in self.older(stream)), default=0)

    def extent(self) -> tuple[int, int, int]:
        """How much is here: the log's newest generation, its bytes, and how many events."""
        return self.generation(TRAIN_LOG), self.size(TRAIN_LOG), sum(1 for _ in self.events())

    @contextmanager
    def _writing(self, file: Path) -> Iterator[Path]:
        """`file`, its folder made; DflashError when the machine cannot take it."""
        try:
            if not file.parent.is_dir():
                paths.private_dir(paths.mirrors_dir())
                file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            yield file
        except OSError as e:
            raise DflashError(f"{file}: cannot be written ({e.strerror}); make room there and go on") from e

    def _read_inode(self, file: Path) -> int | None:
        try:
            with _opened(_inode_file(file)) as number:
                text = os.read(number, _INODE_BYTES)
        except FileNotFoundError:
            return None
        return int(text) if text.isdigit() else None


def _copy_rest(source: IO[bytes], begin: int, copy: IO[bytes]) -> None:
    if hasattr(os, "copy_file_range"):
        # The kernel copies 3 times as fast, but never to where a file is open for appending.
        end = os.open(copy.name, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.lseek(end, 0, os.SEEK_END)
            while num := os.copy_file_range(source.fileno(), end, _COPY_BYTES, begin):
                begin += num
        except OSError:
            pass  # Not between these file systems, or there is no room: what follows meets it again, and says so.
        finally:
            os.close(end)
    source.seek(begin)
    while block := source.read(_BLOCK_BYTES):
        copy.write(block)


def _replace(file: Path, data: bytes) -> None:
    part = file.with_name(f".{file.name}.part")
    part.write_bytes(data)
    part.replace(file)


@contextmanager
def _opened(file: Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    """A descriptor of a file. Asked at every poll of every run: one of Python's takes three times as many calls."""
    descriptor = os.open(file, flags | os.O_CLOEXEC, 0o666)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _inode_file(file: Path) -> Path:
    return file.with_name(f"{file.name}.inode")

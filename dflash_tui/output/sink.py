"""Where an answer goes: stdout, or a file that is there as a whole or not at all.

Bytes pass straight to the descriptor: nothing waits in a buffer, so nothing is left to fail when the interpreter ends.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dflash_tui.errors import DflashError, UsageError


class Sink:
    """`write` puts text out at once. BrokenPipeError when the reader has left, DflashError when there is no room."""

    def __init__(self, descriptor: int, name: str, encoding: str = "utf-8", errors: str = "strict") -> None:
        self.num_bytes = 0
        self._descriptor = descriptor
        self._name = name
        self._encoding = encoding
        self._errors = errors

    def write(self, text: str) -> None:
        self.write_bytes(text.encode(self._encoding, self._errors))

    def write_bytes(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                written = os.write(self._descriptor, left)
            except BlockingIOError:
                _wait_for_room(self._descriptor)
                continue
            except BrokenPipeError:
                raise
            except OSError as e:
                raise DflashError(f"{self._name}: cannot be written ({e.strerror})") from e
            self.num_bytes += written
            left = left[written:]

    def copy(self, file: Path) -> None:
        """All of a file's bytes."""
        with file.open("rb") as source:
            while data := source.read(1 << 20):
                self.write_bytes(data)


def _wait_for_room(descriptor: int) -> None:
    import select

    select.select([], [descriptor], [])


def stdout() -> Sink:
    """stdout, in the encoding that it was given."""
    sys.stdout.flush()
    return Sink(sys.stdout.fileno(), "stdout", sys.stdout.encoding, sys.stdout.errors or "strict")


@contextmanager
def file_sink(file: Path) -> Iterator[Sink]:
    """`file`, made or replaced when the `with` is left in peace; an error leaves what was there before."""
    with replacing(file) as (_, descriptor):
        try:
            yield Sink(descriptor, str(file))
        except BrokenPipeError as e:
            raise DflashError(f"{file}: nobody reads from it") from e


def is_special(file: Path) -> bool:
    """Whether it is there and neither a plain file nor a folder: a pipe, a device."""
    return file.exists() and not file.is_file() and not file.is_dir()


@contextmanager
def replacing(file: Path) -> Iterator[tuple[Path, int]]:
    """A file beside `file` and its descriptor; renamed to `file` in the end, removed by an error.

    What is no plain file (a pipe, /dev/null) is written as it is. UsageError for a folder.
    """
    if file.is_dir():
        raise UsageError(f"--output {file}: is a folder; name a file in it")
    special = is_special(file)
    # Whoever has a link there wants the file behind it replaced, not the link.
    target = file if special else Path(os.path.realpath(file))
    place = file if special else target.with_name(f".{target.name[:200]}.{os.urandom(4).hex()}.part")
    mode = target.stat().st_mode & 0o777 if target.is_file() else 0o666
    try:
        descriptor = os.open(place, os.O_WRONLY | os.O_CLOEXEC | (0 if special else os.O_CREAT | os.O_EXCL), mode)
    except OSError as e:
        raise UsageError(f"--output {file}: cannot be written ({e.strerror})") from e
    try:
        yield place, descriptor
        if not special:
            place.replace(target)
    except BaseException:
        if not special:
            with suppress(OSError):
                place.unlink()
        raise
    finally:
        os.close(descriptor)

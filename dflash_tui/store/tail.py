"""A run's own words, read from its mirror: what its trainer printed, or the records of its log, as they come.

Owns where reading stands between two looks. The words are the run's: whoever shows them makes them visible first.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from dflash_tui.store.mirror import TRAIN_LOG, Mirror

# A line longer than this is cut: a terminal is no place for a 4 MB note, and `query` has it whole.
MAX_LINE_CHARS = 20_000
_LAST_BYTES = 4096


@dataclass(slots=True)
class _Place:
    offset: int = 0
    held: bytes = b""


@dataclass(slots=True)
class Tail:
    """`metrics` reads the log's records, from `since_step` on if given; else the output of every attempt in turn."""

    run_id: str
    metrics: bool = False
    since_step: int | None = None
    _places: dict[int, _Place] = field(default_factory=dict)

    def read(self) -> list[str]:
        """The whole lines that came since the last call, without their ends."""
        return [line for number, file in self.files() for line in self._lines(number, file) if self._wants(line)]

    def rest(self) -> list[str]:
        """What stands behind the last line's end, for a run that will write no more."""
        held = [place.held for place in self._places.values() if place.held]
        self._places.clear()
        return [line for line in map(_decode, held) if self._wants(line)]

    def files(self) -> list[tuple[int, Path]]:
        """The generations of the log, or the outputs, each with the number that it keeps when it is renamed."""
        mirror = Mirror(self.run_id)
        if self.metrics:
            return [*mirror.older(TRAIN_LOG), (mirror.generation(TRAIN_LOG), mirror.path(TRAIN_LOG))]
        outputs = mirror.folder.glob("attempts/*/output.log")
        return sorted((int(path.parent.name), path) for path in outputs if path.parent.name.isdecimal())

    def _lines(self, number: int, file: Path) -> list[str]:
        place = self._places.setdefault(number, _Place())
        try:
            with file.open("rb") as copy:
                copy.seek(place.offset)
                data = copy.read()
        except FileNotFoundError:
            return []
        place.offset += len(data)
        *whole, place.held = (place.held + data).split(b"\n")
        return [_decode(line) for line in whole]

    def _wants(self, line: str) -> bool:
        if self.since_step is None:
            return True
        try:
            step = json.loads(line)["step"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return False
        return isinstance(step, (int, float)) and step >= self.since_step


def last_words(run_id: str) -> str | None:
    """The last line that the newest attempt printed, if any; cheap at any length."""
    outputs = Tail(run_id).files()
    if not outputs:
        return None
    with outputs[-1][1].open("rb") as copy:
        size = copy.seek(0, os.SEEK_END)
        copy.seek(max(0, size - _LAST_BYTES))
        # A progress bar writes over itself: what stands behind its last return is what a person would see.
        lines = copy.read().replace(b"\r", b"\n").split(b"\n")
    return next((text for line in reversed(lines) if (text := _decode(line).strip())), None)


def _decode(line: bytes) -> str:
    text = line.decode("utf-8", "replace").rstrip("\r")
    return text if len(text) <= MAX_LINE_CHARS else f"{text[:MAX_LINE_CHARS]} ... ({len(text):,} characters)"

"""What panels and checks have in common as files: one comment of help text and `key: value` lines above the SQL.

Owns where such files lie (the bundled folder, then the person's), and the reading of their headers: every mistake
says file:line. Which keys there are is said by panel_files.py and check_files.py. Nothing here knows SQL beyond its
comments, or opens a database.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from dflash_tui import paths
from dflash_tui.errors import UsageError
from dflash_tui.text import did_you_mean, visible

T = TypeVar("T")
Readers = Mapping[str, Callable[[str], Any]]

_RELATIONS: tuple[Literal["evals", "gpus"], ...] = ("evals", "gpus")
_KEY_LINE = re.compile(r"([A-Za-z_]+):(?:\s+(.*))?")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One of `keys` must have been logged in `relation` (or sampled, in `gpus`), or there is nothing to ask."""

    relation: Literal["steps", "evals", "gpus"]
    keys: tuple[str, ...]


class SqlFile(Protocol):
    """A panel or a check, as far as its SELECTs go: `sql` is the whole text of `file`."""

    @property
    def file(self) -> Path: ...
    @property
    def sql(self) -> str: ...
    @property
    def requires(self) -> tuple[Requirement, ...]: ...


def load_folder(folder: str, parse: Callable[[str, Path, str], T], broken: Callable[[str, Path, str], T]) -> list[T]:
    """All files of the bundled `folder` and of the person's own; those replace bundled ones of the same name.

    `broken` makes what stands in for a file that cannot be read, so that the others go on. Files are read anew at each
    call: a new one needs no restart.
    """
    found: dict[str, T] = {}
    for place in (paths.bundled("sql") / folder, paths.config_dir() / folder):
        for file in _sql_files(place):
            name = visible(file.stem)
            try:
                found[name] = parse(name, file, file.read_text(encoding="utf-8"))
            except UsageError as e:
                found[name] = broken(name, file, str(e))
            except UnicodeDecodeError as e:
                found[name] = broken(name, file, f"{visible(str(file))}: not UTF-8 at byte {e.start}; save it as UTF-8")
            except OSError as e:
                found[name] = broken(name, file, f"{visible(str(file))}: cannot be read: {e.strerror}")
    return list(found.values())


def changed_at(folder: str) -> int:
    """Another number than before when a file came into the person's own `folder`, went, or took another's place."""
    try:
        return (paths.config_dir() / folder).stat().st_mtime_ns
    except OSError:
        return 0


def _sql_files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.suffix == ".sql" and not file.name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as e:
        raise UsageError(f"{folder}: the files in it cannot be listed: {e.strerror}") from e


def read_header(file: Path, text: str, readers: Readers) -> tuple[str, dict[str, Any]]:
    """The help text above `text`, and its keys as `readers` read them; UsageError says where the first mistake is."""
    lines = list(_comment(text))
    begin = _keys_begin([line for _, line in lines], readers)
    fields: dict[str, Any] = {}
    for number, line in lines[begin:]:
        if not line:
            continue
        try:
            key, value = _read_key(line, readers)
        except (ValueError, UsageError) as e:
            raise UsageError(f"{visible(str(file))}:{number}: {e}") from e
        if key in fields:
            raise UsageError(f"{visible(str(file))}:{number}: {key!r} is set twice")
        fields[key] = value
    return "\n".join(line for _, line in lines[:begin]).strip(), fields


def _keys_begin(lines: Sequence[str], readers: Readers) -> int:
    """Where help ends and keys begin. Help may have lines that begin with a word and a colon, even with a key's.

    Keys begin in the last paragraph with a line of a known key, at that line; so do paragraphs above it that end in
    nothing but keys. Where no key is known, a last paragraph that looks like keys is one: somebody mistyped its only
    key.
    """
    found = len(lines)
    for begin, end in reversed(_paragraphs(lines)):
        keys = [match[1] if (match := _KEY_LINE.fullmatch(line)) else None for line in lines[begin:end]]
        known = [place for place, key in enumerate(keys) if key in readers]
        is_last = found == len(lines)
        if all(key is not None and (key.islower() or key.lower() in readers) for key in keys):
            if not known and not (is_last and end == len(lines)):
                continue
            found = begin
        elif known and (is_last or None not in keys[known[0] :]):
            return begin + known[0]
        elif not is_last:
            break
    return found


def _paragraphs(lines: Sequence[str]) -> list[tuple[int, int]]:
    """The first line of each, and the line behind it."""
    begins = [at for at, line in enumerate(lines) if line and (at == 0 or not lines[at - 1])]
    ends = [at + 1 for at, line in enumerate(lines) if line and (at + 1 == len(lines) or not lines[at + 1])]
    return list(zip(begins, ends, strict=True))


def _comment(text: str) -> Iterator[tuple[int, str]]:
    """The lines of the comment that the file begins with, without their dashes, and their numbers."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("--"):
            return
        yield number, line.lstrip("-").strip()


def _read_key(line: str, readers: Readers) -> tuple[str, Any]:
    match = _KEY_LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"{line!r} is no 'key: value', and the keys have begun above it")
    key, text = match[1], (match[2] or "").strip()
    if key not in readers:
        raise ValueError(f"unknown key {key!r}: {did_you_mean(key, readers)}")
    if not text:
        raise ValueError(f"{key!r} has no value")
    return key, readers[key](text)


def read_order(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        raise ValueError(f"order {text!r} is no whole number")
    return int(text)


def read_requires(text: str) -> tuple[Requirement, ...]:
    found = []
    for group in text.split(","):
        words = [word.strip() for word in group.split("|")]
        relation: Literal["steps", "evals", "gpus"] = "steps"
        for other in _RELATIONS:
            if all(word.startswith(f"{other}.") for word in words):
                relation, words = other, [word.removeprefix(f"{other}.") for word in words]
        if not all(re.fullmatch(r"[^\s.]+", key) for key in words):
            raise ValueError(f"requires {group.strip()!r}: write key, evals.key, gpus.key, or key | key")
        found.append(Requirement(relation, tuple(words)))
    return tuple(found)


def one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"{text!r}: {did_you_mean(text, words)}")
        return text

    return read

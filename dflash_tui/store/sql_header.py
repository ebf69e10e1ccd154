"""What panels and checks have in common as files: one comment of help text and `key: value` lines above the SQL.

Owns where such files lie (the bundled folder, then the person's), and the reading of their headers: every mistake
says file:line. Which keys there are is said by panel_files.py and check_files.py. Nothing here knows SQL beyond its
comments, or opens a database.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from dflash_tui import paths
from dflash_tui.errors import UsageError
from dflash_tui.text import did_you_mean, visible

T = TypeVar("T")
Readers = Mapping[str, Callable[[str], Any]]

_KEY_LINE = re.compile(r"([A-Za-z_]+):(?:\s+(.*))?")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One of `keys` must have been logged in `relation`, or there is nothing to ask."""

    relation: Literal["steps", "evals"]
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


def _sql_files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.suffix == ".sql" and not file.name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as e:
        raise UsageError(f"{folder}: the files in it cannot be listed: {e.strerror}") from e


def read_header(file: Path, text: str, readers: Readers) -> tuple[str, dict[str, Any]]:
    """The help text above `text`, and its keys as `readers` read them; UsageError says where the first mistake is."""
    help_lines: list[str] = []
    fields: dict[str, Any] = {}
    for number, line in _comment(text):
        match = _KEY_LINE.fullmatch(line)
        # A line of help may wrap before a word and a colon; the keys begin with one that we know, or after a gap.
        if not fields and not (match and (match[1] in readers or not (help_lines and help_lines[-1]))):
            help_lines.append(line)
        elif line:
            try:
                key, value = _read_key(line, match, readers)
            except (ValueError, UsageError) as e:
                raise UsageError(f"{visible(str(file))}:{number}: {e}") from e
            if key in fields:
                raise UsageError(f"{visible(str(file))}:{number}: {key!r} is set twice")
            fields[key] = value
    return "\n".join(help_lines).strip(), fields


def _comment(text: str) -> Iterator[tuple[int, str]]:
    """The lines of the comment that the file begins with, without their dashes, and their numbers."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("--"):
            return
        yield number, line.lstrip("-").strip()


def _read_key(line: str, match: re.Match[str] | None, readers: Readers) -> tuple[str, Any]:
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
        is_eval = all(word.startswith("evals.") for word in words)
        keys = tuple(word.removeprefix("evals.") if is_eval else word for word in words)
        if not all(re.fullmatch(r"[^\s.]+", key) for key in keys):
            raise ValueError(f"requires {group.strip()!r}: write key, evals.key, or key | key")
        found.append(Requirement("evals" if is_eval else "steps", keys))
    return tuple(found)


def one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"{text!r}: {did_you_mean(text, words)}")
        return text

    return read

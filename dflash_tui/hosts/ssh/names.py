"""The machines that ~/.ssh/config knows by name. Reads files, and writes none."""

import re
from collections.abc import Iterator
from pathlib import Path

_MAX_DEPTH = 16
# Patterns; and a blank, which no address may have.
_UNFIT = frozenset("*?! ")
_WORD = re.compile(r'"([^"]*)"|([^\s"]+)')


def ssh_names() -> list[str]:
    """Every name of a Host line that stands for one machine, in the order of the file; [] where there is no file."""
    folder = Path("~/.ssh").expanduser()
    return list(dict.fromkeys(_names_in(folder / "config", folder, 0)))


def _names_in(file: Path, folder: Path, depth: int) -> Iterator[str]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        key, *words = _words(line)
        if key == "host":
            yield from (word for word in words if not _UNFIT & set(word))
        elif key == "include" and depth < _MAX_DEPTH:
            for word in words:
                pattern = Path(word).expanduser()
                # One that is not absolute is below ~/.ssh.
                anchor = Path(pattern.anchor) if pattern.is_absolute() else folder
                for found in sorted(anchor.glob(str(pattern.relative_to(pattern.anchor)))):
                    yield from _names_in(found, folder, depth + 1)


def _words(line: str) -> list[str]:
    """The key in small letters, then the values; `Key=value` is as good as `Key value`."""
    key, _, rest = line.strip().replace("=", " ", 1).partition(" ")
    return [key.lower(), *(quoted or plain for quoted, plain in _WORD.findall(rest))]

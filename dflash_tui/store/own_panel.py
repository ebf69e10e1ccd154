"""A person's query as a panel's file: its header written, read back by those who will read it, and put in place."""

import os
import re
from pathlib import Path

from dflash_tui import paths
from dflash_tui.errors import UsageError
from dflash_tui.store.panel_files import has_header, load_panels, parse

_TITLE = re.compile(r"^-+ *title:.*$", re.MULTILINE)
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,47}")


def place_of(name: str) -> Path:
    """Where a panel called so lies. UsageError for what is no name."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name of a panel: use a-z, 0-9, - and _, and begin with a letter or a digit")
    return paths.config_dir() / "panels" / f"{name}.sql"


def panel_text(name: str, sql: str, chart: str) -> str:
    """The whole file. A header that `sql` has already stays, save a title that is another panel's; else it gets one,
    with `chart` for its line of that name.

    UsageError says what is wrong with a header.
    """
    file = place_of(name)
    text = sql.strip("\n").rstrip(" ;\n")
    title = name.replace("_", " ").replace("-", " ")
    if has_header(file, text):
        known = parse(name, file, text).title
        if any(other.title == known and other.name != name for other in load_panels()):
            text = _TITLE.sub(f"-- title: {title}", text, count=1)
    else:
        # The empty line ends the header: a comment of the query's own is none of its keys.
        text = f"-- A query of one's own.\n--\n-- title: {title}\n-- chart: {chart}\n-- order: 900\n\n{text}"
    parse(name, file, text)
    return f"{text};\n"


def save_panel(name: str, text: str) -> Path:
    """Write it, whole or not at all; what was there is replaced. UsageError when it cannot be written."""
    file = place_of(name)
    _write(file, text.encode())
    return file


def put_back(name: str, before: bytes | None) -> None:
    """Have its file as it was before it was saved: None for no file. UsageError when it cannot be written."""
    if before is None:
        place_of(name).unlink(missing_ok=True)
    else:
        _write(place_of(name), before)


def _write(file: Path, content: bytes) -> None:
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        part.replace(file)
    except OSError as e:
        raise UsageError(f"{file}: cannot be written: {e.strerror}") from e

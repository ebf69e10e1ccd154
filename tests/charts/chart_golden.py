"""Golden text: what a chart looks like, in a file that a person can read in a diff.

`REGENERATE_GOLDEN=1 pytest tests/charts` writes the files anew; look at every change before it is committed.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dflash_tui.charts import Canvas

GOLDEN = Path(__file__).parent / "golden"
Golden = Callable[[str, str], None]


@pytest.fixture
def golden() -> Golden:
    """Compares a text with the golden file of a name, or writes the file."""

    def check(name: str, text: str) -> None:
        file = GOLDEN / f"{name}.txt"
        if os.environ.get("REGENERATE_GOLDEN"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        assert file.exists(), f"no golden file {name}; look at it first, then write it with REGENERATE_GOLDEN=1"
        assert text == file.read_text(encoding="utf-8")

    return check


def framed(canvas: Canvas) -> str:
    """A canvas with a border, so that blanks at its ends show."""
    rows = ["".join(span.text for span in row) for row in canvas.rows()]
    title = f" {canvas.width} x {canvas.height} "
    top = f"╔{title:═<{canvas.width}.{canvas.width}}╗"
    return "\n".join([top, *(f"║{row}║" for row in rows), f"╚{'═' * canvas.width}╝"]) + "\n"

"""The panel of findings: each with its sign, its sentence in full, and what to look at next. Asks nothing."""

import textwrap
from typing import ClassVar

from dflash_tui.charts import Canvas, Role
from dflash_tui.output.findings import SIGNS
from dflash_tui.text import visible
from dflash_tui.ui.panel import Panel

ROLES = {"critical": Role.BAD, "warning": Role.MARK, "info": Role.MUTED}


class FindingsPanel(Panel):
    """Its result is that of `findings.as_result`."""

    is_asked: ClassVar[bool] = False

    @property
    def num_rows(self) -> int:
        return len(self._lines(*self.size))

    def _draw(self, width: int, height: int) -> Canvas:
        canvas = Canvas(width, height)
        if self.result is None:
            return canvas.note("reading ...")
        lines = self._lines(width, height)
        for y, (text, role) in enumerate(lines[self._first_row : self._first_row + height]):
            canvas.write(0, y, text, role)
        if len(lines) > self._first_row + height > 0 and width > 0:
            canvas.write(max(0, width - 3), height - 1, "  ↓", Role.FOCUS)
        return canvas

    def _lines(self, width: int, height: int) -> list[tuple[str, Role]]:
        """The worst first. Where not all of it has room, what to look at next is said of the worst alone."""
        whole = self._wrapped(width, num_next=len(self.result.rows) if self.result else 0)
        return whole if len(whole) <= height else self._wrapped(width, num_next=1)

    def _wrapped(self, width: int, num_next: int) -> list[tuple[str, Role]]:
        rows = self.result.rows if self.result else []
        if self.result and self.result.state == "empty":
            return [(line, Role.MUTED) for line in wrapped(self.result.why or "", width)]
        lines: list[tuple[str, Role]] = []
        if not any(row[0] != "info" for row in rows):
            lines += [("✓ no warnings", Role.GOOD), ("", Role.TEXT)] if rows else [("✓ no findings", Role.GOOD)]
        for number, (severity, title, sentence, following, _) in enumerate(rows):
            lines.append((f"{SIGNS[severity]} {visible(title)}", ROLES[severity]))
            told = Role.MUTED if severity == "info" else Role.TEXT
            lines += [(f"  {text}", told) for text in wrapped(sentence, width - 2)]
            if following and severity != "info" and number < num_next:
                first, *more = wrapped(following, width - 4) or [""]
                lines += [(f"  → {first}", Role.MUTED), *((f"    {text}", Role.MUTED) for text in more)]
        return lines


def wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(visible(text), max(8, width))

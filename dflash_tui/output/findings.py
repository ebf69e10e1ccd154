"""What checks found, as text and as the JSON shape that scripts build on."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from dflash_tui.text import visible

if TYPE_CHECKING:
    from dflash_tui.store.base import Finding

# The check that says there was nothing to look at; without another finding that is no good news.
UNCHECKED = "unchecked"
SIGNS: dict[str, str] = {"critical": "✖", "warning": "▲", "info": "·"}


def write_findings(findings: Sequence["Finding"], out: TextIO) -> None:
    """A line for each finding, and under a warning what to look at next."""
    for one in findings:
        out.write(visible(f"{SIGNS[one.severity]} {one.severity}  {one.title}: {one.sentence}") + "\n")
        if one.next and one.severity != "info":
            out.write(visible(f"    next: {one.next}") + "\n")
    bad = sum(one.severity != "info" for one in findings)
    none = "nothing was checked" if any(one.check == UNCHECKED for one in findings) else "nothing to warn of"
    out.write(f"{bad} finding{'' if bad == 1 else 's'}\n" if bad else f"{none}\n")


def findings_tree(findings: Sequence["Finding"]) -> list[dict[str, Any]]:
    keys = ("check", "severity", "sentence", "steps", "values")
    return [{key: getattr(one, key) for key in keys} for one in findings]

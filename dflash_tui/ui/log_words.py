"""What the Logs screen says of a log: which view of what, why there is no line, what is the matter with one."""

from dflash_tui.runs import Run
from dflash_tui.store.log_file import MAX_LINE_BYTES
from dflash_tui.store.log_notes import MAX_REJECTS
from dflash_tui.store.transcript import Layout, Line, View
from dflash_tui.text import data_size, numbered, visible

VIEWS: dict[View, str] = {"metrics": "log", "output": "output", "rejects": "rejects"}
NO_RUN = ("No run chosen.", "", "1 lists the runs; 5 shows the log of the one under the cursor.")


def title_words(view: View, name: str, layout: Layout, kept: str, num_rejects: int, follows: bool) -> str:
    """The views, the one that is shown in brackets; the run; how much there is of it. `kept`: the filter, if any."""
    views = "".join(f"[{words}]" if one == view else f" {words} " for one, words in VIEWS.items())
    parts = [f"{views} {visible(name)}"]
    if kept:
        share = "" if layout.is_whole else " so far"
        parts.append(f"{layout.num_rows:,} of {numbered(layout.num_lines, 'line')} have {visible(kept)!r}{share}")
    elif view == "rejects":
        shown = f", the first {MAX_REJECTS:,} here" if num_rejects > MAX_REJECTS else ""
        parts.append(f"{num_rejects:,} of {numbered(layout.num_lines, 'line')}{shown}")
    else:
        parts.append(f"{numbered(layout.num_lines, 'line')}, {data_size(layout.num_bytes)}")
    return " · ".join([*parts, *(["▼ following"] if follows else [])])


def why_empty(view: View, run: Run | None, layout: Layout, kept: str) -> tuple[str, ...]:
    """Why there is no row, and which key shows some."""
    if kept:
        return ("No line has these words." if layout.is_whole else "looking ...", "", "Esc shows all lines.")
    if view == "rejects":
        return ("Every line so far is a record.", "", "tab shows the log.")
    if view == "metrics":
        return ("Nothing was logged yet.", "", "tab shows what the trainer printed.")
    if run is not None and run.host is None:
        return ("What its trainer printed is not here: the run was ingested from a file.", "", "tab: the next view.")
    return ("Nothing was printed yet.", "", "shift+tab shows the log.")


def where_words(view: View, row: Line, layout: Layout) -> str:
    """Which line this is, and what is to be said of it."""
    name = "attempt" if view == "output" else "generation"
    parts = [f"line {row.line_no:,}", *([f"{name} {row.part}"] if len(layout.parts) > 1 else [])]
    if row.is_cut:
        parts.append(f"{row.size:,} bytes, the first {MAX_LINE_BYTES:,} shown")
    if row.num_over:
        parts.append(f"the last of {row.num_over + 1:,} states of a progress bar")
    if row.kind == "void":
        parts.append("does not count: a later attempt logged this step again")
    if row.reason:
        parts.append(f"no record: {row.reason}")
    return visible(" · ".join(parts))

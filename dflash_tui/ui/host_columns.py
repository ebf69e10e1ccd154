"""The columns of the tree of hosts and the sentences on one: what each says, how a silence is told. Draws nothing."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from dflash_tui.text import duration, visible
from dflash_tui.ui.columns import Cell, Column
from dflash_tui.ui.host_board import NodeStanding, Standing
from dflash_tui.ui.host_tree import Line

if TYPE_CHECKING:
    from dflash_tui.remote.machine import Gpu, Overview

_ROOMY_BYTES = 10 << 30
_CLOCK_S = 2.0
_WORDS = {"auth-failed": "auth failed", "key-unknown": "key unknown", "key-changed": "key changed"}
# Room for "✗ unreachable" and an age behind it.
_LONG_REACH = 18


class HostRow(NamedTuple):
    """A line of the tree with all that is known of it, `now` by the board's clock.

    `heard_s` is how long ago a run of it was heard of, `num_live` how many runs the store believes to live there,
    `silence` what the collector says of it while it does not answer.
    """

    line: Line
    now: float
    standing: Standing | None = None
    node: NodeStanding | None = None
    heard_s: float | None = None
    num_live: int = 0
    silence: str | None = None

    @property
    def view(self) -> "Overview | None":
        return self.standing.look.view if self.standing and self.standing.look else None

    @property
    def silent_s(self) -> float | None:
        """For how long there was no contact; None: there is, or it never was asked."""
        standing = self.standing
        if standing is None or standing.silent_at is None or standing.look is None:
            return None
        if standing.heard_at is not None:
            return self.now - standing.heard_at
        # Not in this session: then as long as the store knows, or as we have tried.
        return max(self.now - standing.silent_at, self.heard_s or 0.0)


def reach(row: HostRow, width: int = _LONG_REACH) -> Cell:
    """By a glyph and a word; with `width` cells also how fast, or for how long not."""
    is_long = width >= _LONG_REACH
    if row.standing is None:
        return _node_reach(row)
    look = row.standing.look
    if row.standing.check_began_at is not None or look is None:
        return Cell("◌ checking" if look else "◌ looking", "tone--busy")
    if look.state == "reachable":
        latency = f" {look.view.latency_ms:.0f} ms" if look.view and is_long else ""
        return Cell(f"● reachable{latency}", "tone--good")
    if look.state == "unreachable":
        return Cell("✗ unreachable" + (f" {duration(row.silent_s)}" if is_long else ""), "tone--bad")
    return Cell(f"▲ {_WORDS[look.state]}", "tone--warn")


def _node_reach(row: HostRow) -> Cell:
    container, node = row.line.container, row.node
    if container is not None:
        glyph = "●" if container.status == "running" else "○"
        return Cell(f"{glyph} {container.status}", "tone--quiet")
    if node is None or node.looked_at is None:
        return Cell("◌ looking", "tone--busy")
    return Cell("✗ no answer", "tone--bad") if node.trouble else Cell("● reachable", "tone--good")


def gpus(row: HostRow, width: int = 12) -> Cell:
    """How many, and how busy each is; where that is too long, how many are free."""
    view = row.view
    if view is None:
        return Cell("-", "list--quiet")
    if view.gpus is None:
        return Cell("none seen", "list--quiet")
    if not view.gpus:
        return Cell("none", "list--quiet")
    busy = " ".join("?" if one.utilization_pct is None else f"{one.utilization_pct:.0f}%" for one in view.gpus)
    words = f"{len(view.gpus)}x {busy}"
    num_free = sum(one.is_free is True for one in view.gpus)
    return Cell(words if len(words) <= width else f"{len(view.gpus)}x, {num_free} free")


def _memory(row: HostRow) -> Cell:
    view = row.view
    if view is None or view.memory_total is None or view.memory_available is None:
        return Cell("-", "list--quiet")
    return Cell(f"{(view.memory_total - view.memory_available) / 2**30:.0f}/{view.memory_total / 2**30:.0f} GiB")


def _disk(row: HostRow) -> Cell:
    if row.view is None:
        return Cell("-", "list--quiet")
    is_low = row.view.disk_free < _ROOMY_BYTES
    free = row.view.disk_free / 2**30
    words = f"{free / 1024:.1f} TiB" if free >= 1000 else f"{free:.0f} GiB" if free >= 10 else f"{free:.1f} GiB"
    return Cell(f"! {words}" if is_low else words, "tone--warn" if is_low else "")


def _runs(row: HostRow) -> Cell:
    if row.view is not None:
        return Cell(str(len(row.view.living)))
    return Cell(f"{row.num_live}?" if row.num_live else "-", "list--quiet")


def _clock(row: HostRow) -> Cell:
    view = row.view
    if view is None:
        return Cell("-", "list--quiet")
    offset_s = view.clock_offset_s
    # Within the round trip an offset is none.
    is_off = abs(offset_s) > max(_CLOCK_S, view.latency_ms / 1000)
    words = _offset_words(offset_s)
    return Cell(f"! {words}" if is_off else words, "tone--warn" if is_off else "list--quiet")


def _offset_words(offset_s: float) -> str:
    if abs(offset_s) < 100:
        return f"{offset_s:+.1f} s"
    if abs(offset_s) < 900:
        return f"{offset_s:+.0f} s"
    hours = offset_s / 3600
    return f"{hours:+.1f} h" if abs(hours) < 48 else f"{hours / 24:+,.0f} d"


def _name(row: HostRow) -> Cell:
    is_known = row.line.spec is not None
    return Cell(f"{row.line.branch}{visible(row.line.name)}", "list--name" if is_known else "list--quiet")


def _kind(row: HostRow) -> Cell:
    spec = row.line.spec
    if spec is None:
        return Cell("node" if row.line.container is None else "ct", "list--quiet")
    return Cell(f"ct {spec.vmid}" if spec.vmid else spec.kind, "list--quiet")


def _note(row: HostRow) -> Cell:
    return Cell(next(sentences(row, is_brief=True), ""), "list--quiet")


REACH: Column[HostRow] = Column("REACH", 13, reach, widest=20, growth=1)
GPU: Column[HostRow] = Column("GPU", 12, gpus, widest=16, growth=2)
COLUMNS: tuple[Column[HostRow], ...] = (
    Column("HOST", 12, _name, widest=18, growth=3),
    Column("KIND", 7, _kind, rank=5),
    REACH,
    GPU,
    Column("MEMORY", 11, _memory, "right", rank=3),
    Column("DISK", 9, _disk, "right", rank=2),
    Column("RUNS", 4, _runs, "right", rank=1),
    Column("CLOCK", 8, _clock, "right", rank=4),
    Column("NOTE", 12, _note, rank=6, takes_rest=True),
)


def sentences(row: HostRow, *, is_brief: bool = False) -> Iterator[str]:
    """What is to be said of it, the most important first; fit for a screen."""
    container = row.line.container
    if row.standing is None:
        yield from _node_sentences(row)
    elif row.silence:
        yield visible(row.silence)
    elif row.standing.look is not None and row.standing.look.note:
        is_silent = row.standing.look.state == "unreachable" and not is_brief
        silent = f"no contact for {duration(row.silent_s)}: " if is_silent else ""
        yield silent + visible(row.standing.look.note).removeprefix(f"{row.standing.spec.name}: ")
    if container is not None and container.lock:
        yield f"locked: {visible(container.lock)}"
    if row.view is not None and row.view.no_gpus:
        yield visible(row.view.no_gpus)


def _node_sentences(row: HostRow) -> Iterator[str]:
    if row.line.container is not None:
        elsewhere = row.line.container.node
        yield f"lives on the node {visible(elsewhere)}: a adds it there" if elsewhere else "no host yet: a adds it"
    elif row.node is not None and row.node.trouble:
        yield visible(row.node.trouble)
    elif row.node is not None and row.node.looked_at is not None:
        num_here = sum(one.node is None for one in row.node.containers)
        yield f"a Proxmox node with {num_here} container{'' if num_here == 1 else 's'}"


def gpu_words(gpu: "Gpu") -> str:
    """One GPU, and whose it is."""
    figures = [
        f"{figure:.0f}{unit}"
        for figure, unit in ((gpu.utilization_pct, "%"), (gpu.temperature_c, " C"), (gpu.power_w, " W"))
        if figure is not None
    ]
    number = "?" if gpu.index is None else gpu.index
    return visible(
        f"GPU {number}  {gpu.name.removeprefix('NVIDIA ')}: {gpu}" + (f"  {', '.join(figures)}" if figures else "")
    )

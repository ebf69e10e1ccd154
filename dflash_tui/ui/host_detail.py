"""All that is known of the host under the cursor, as lines of text: its silence, its GPUs, what a check found."""

from collections.abc import Iterator

from textual.content import Content

from dflash_tui.config import HostSpec
from dflash_tui.text import duration, visible
from dflash_tui.ui.host_columns import HostRow, gpu_words, sentences

CHECK_HINT = "c looks thoroughly: Python, torch, GPUs, disk, clock, locks"
Piece = tuple[str, str]
_STYLES = {
    "ok": "$text-success",
    "info": "$text-muted",
    "warning": "bold $text-warning",
    "critical": "bold $text-error",
}
_GLYPHS = {"ok": "✓", "info": "·", "warning": "▲", "critical": "✗"}


def detail(row: HostRow) -> Content:
    return Content("\n").join(Content.assemble(*line) for line in _lines(row))


def _lines(row: HostRow) -> Iterator[list[Piece]]:
    yield [(visible(row.line.name), "bold"), (f"  {where(row)}", "$text-muted")]
    for sentence in sentences(row):
        yield [(sentence, "")]
    view, standing = row.view, row.standing
    if view is not None and view.gpus:
        for gpu in view.gpus:
            yield [(gpu_words(gpu), "")]
    if standing is None:
        return
    if standing.check_began_at is not None:
        yield [(f"checking ... {duration(row.now - standing.check_began_at)}", "$text-warning")]
    if standing.trouble and (standing.look is None or standing.look.note != standing.trouble):
        yield [("✗ ", _STYLES["critical"]), (visible(standing.trouble), "")]
    for one in standing.findings:
        look = _STYLES[one.severity]
        yield [(f"{_GLYPHS[one.severity]} {one.what:9} ", look), (visible(one.sentence), "")]
    if not (standing.findings or standing.trouble or standing.check_began_at is not None):
        is_unknown = standing.look is not None and standing.look.state == "key-unknown"
        hint = "c connects, and asks whether that is its key" if is_unknown else CHECK_HINT
        yield [(hint, "$text-muted")]


def where(row: HostRow) -> str:
    """What it is, and where."""
    spec, container = row.line.spec, row.line.container
    if spec is None:
        if container is None:
            return "a Proxmox node"
        if container.node:
            return visible(f"container {container.vmid} on {container.node}, a node of the cluster of {row.line.node}")
        return f"container {container.vmid} on {visible(row.line.node or '')}"
    if spec.kind == "proxmox":
        name = f" ({container.name})" if container else ""
        return visible(f"container {spec.vmid}{name} on {spec.address}{_rest(spec)}")
    return "this machine" if spec.kind == "local" else visible(f"ssh {spec.address}{_rest(spec)}")


def _rest(spec: HostSpec) -> str:
    words = [f"python {spec.python}" if spec.python else "", f"in {spec.workdir}" if spec.workdir else ""]
    return "".join(f", {word}" for word in words if word)

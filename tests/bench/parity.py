"""The same numbers as other people's code: SpecForge's loss, and what z-lab's class makes of our checkpoint.

No speed: a difference above the limit means that one of the two trains or serves something else.
"""

from pathlib import Path

from tests.bench import peers
from tests.bench.rows import Row, ask, measured

_LIMIT = 1e-5
_NOTES = {
    "parity_specforge": "largest difference of the loss and of the gradients to SpecForge's, same weights and batch,"
    " layers that see everything and layers that slide, two sequences of unequal length",
    "parity_zlab": "largest difference of the logits of our checkpoint, reloaded by z-lab's public class, float32;"
    " names and shapes are those of its own files",
}


def measure(folder: Path) -> list[Row]:
    rows = []
    for bar, note in _NOTES.items():
        try:
            found = ask(bar, folder, folder / bar, python=peers.trainers())
        except peers.NoPeerError as e:
            rows.append(peers.missing(bar, e))
            continue
        rows.append(measured(bar, found["difference"], _LIMIT, f"{found['difference']:.1e}, {note}; {found['of']}"))
        if not rows[-1].met:
            print(f"{bar}: OFF by {found['difference']:.2g}, {found['of']}", flush=True)
    return rows

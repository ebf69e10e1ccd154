"""Which way training attends: three ways to the same numbers.

    structured   no mask, no wasted scores; for a CPU (`structured`)
    dense        torch's scaled_dot_product_attention under a mask; everywhere
    flex         torch's flex_attention: the mask as a rule, its empty parts never computed; for long batches on a GPU

flex is compiled for the GPU at hand and may fail there in many ways: the first failure is told, and dense takes over.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from trainer.blocks import Anchors, visible
from trainer.model import Attend, Attends, KeysValues, Window, attend_dense
from trainer.structured import attend_structured


class Attention:
    """`kind` is one of the three, or "auto": structured on a CPU, dense elsewhere."""

    def __init__(self, kind: str = "auto") -> None:
        self.kind = kind

    def give_up(self, error: Exception) -> str | None:
        """What there is to say if `error` may be flex's, which is not used from now on; None if it cannot be."""
        if self.kind != "flex":
            return None
        self.kind = "dense"
        words = " ".join(str(error).split())[:200]
        return f"attention: flex failed ({type(error).__name__}: {words}); dense takes its place from here"

    def attends(self, anchors: Anchors, num_context: int, block_size: int, windows: set[Window]) -> Attends:
        """One way to attend for each window, for blocks at `anchors`."""
        device = anchors.positions.device
        kind = self.kind if self.kind != "auto" else "structured" if device.type == "cpu" else "dense"
        if kind == "structured":
            return {window: attend_structured(anchors, block_size, window) for window in windows}
        if kind == "flex":
            return {window: attend_flex(anchors, num_context, block_size, window) for window in windows}
        return {window: attend_dense(visible(anchors, num_context, block_size, window)) for window in windows}


def attend_flex(anchors: Anchors, num_context: int, block_size: int, window: Window = None) -> Attend:
    """The same as `attend_dense(visible(anchors, ...))`."""
    rows, blocks = anchors.positions.shape
    queries = blocks * block_size
    rule = _rule(anchors, num_context, block_size, window)
    mask = create_block_mask(rule, rows, None, queries, num_context + queries, device=str(anchors.positions.device))
    # Without compilation every score would exist.
    run: Any = _compiled() if anchors.positions.device.type == "cuda" else flex_attention

    def attend(queries: Tensor, context: KeysValues, block: KeysValues) -> Tensor:
        keys, values = (torch.cat(parts, dim=2) for parts in zip(context, block, strict=True))
        kind = queries.device.type
        # Norms are float32 also where products are not; autocast does not know of flex.
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else queries.dtype
        held = (part.to(dtype) for part in (queries, keys, values))
        out: Tensor = run(*held, block_mask=mask, enable_gqa=True)
        return out

    return attend


def _rule(
    anchors: Anchors, num_context: int, block_size: int, window: Window
) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """`visible` once more, for one query and one key."""
    positions, valid = anchors.positions, anchors.valid
    begins = torch.zeros_like(positions) if anchors.begins is None else anchors.begins

    def sees(row: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        block, slot = query // block_size, query % block_size
        anchor = positions[row, block]
        far = (key < anchor) & (key >= begins[row, block]) & valid[row, block]
        other = key - num_context
        near = other // block_size == block
        if window is not None:
            far = far & (key > anchor + slot - window)
            distance = slot - other % block_size
            near = near & (distance >= 0) & (distance < window)
        return torch.where(key < num_context, far, near)

    return sees


def _compiled() -> Any:
    global _flex
    if _flex is None:
        _flex = torch.compile(flex_attention, dynamic=True)
    return _flex


_flex: Any = None

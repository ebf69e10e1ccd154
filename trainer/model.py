"""The drafter (the paper's 4.1 and A.3): Qwen3-style decoder layers whose attention also reads the target's features.

Parameter names are those of z-lab's checkpoints. The embedding and the head are the target's and are not here; neither
is what a block may see: `attend` is passed in, so that training, decoding and tests share these layers.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from trainer.norm import RMSNorm

# Keys and values of one layer's context, [sequences, kv_heads, tokens, head_dim] each.
KeysValues = tuple[Tensor, Tensor]
# cos and sin, [sequences, tokens, head_dim] each.
Rotary = tuple[Tensor, Tensor]
# (queries, keys and values of the context, keys and values of the blocks) -> what the queries read, shaped like them.
Attend = Callable[[Tensor, KeysValues, KeysValues], Tensor]
# Rows of a tensor, each once, several times or not at all.
Pick = Callable[[Tensor], Tensor]
# How many positions back a layer sees, its own included; None is all of them.
Window = int | None
# One way to attend for each window that a layer has.
Attends = Mapping[Window, Attend]


@dataclass(frozen=True)
class DraftShape:
    """Sizes of a drafter; all but `windows` (one a layer) and `num_taps` are copied from the target.

    A layer without a window sees the whole context and the whole block; one with a window sees so many positions back,
    and inside the block only what stands before it, as servers run such layers.
    """

    hidden_size: int
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    windows: tuple[Window, ...]
    num_taps: int
    rms_norm_eps: float
    attention_bias: bool
    initializer_range: float

    @property
    def num_layers(self) -> int:
        return len(self.windows)


def _as_it_is(rows: Tensor) -> Tensor:
    return rows


def rotate(x: Tensor, rotary: Rotary) -> Tensor:
    """Applies position encodings to [sequences, heads, tokens, head_dim], halves paired as in Llama."""
    cos, sin = (part.unsqueeze(1) for part in rotary)
    out: Tensor = _Rotation.apply(x, cos, sin)  # type: ignore[no-untyped-call]
    return out


class _Rotation(torch.autograd.Function):
    """Written out, since autograd makes five passes over the tensor each way, and this two."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        ctx.dtype = x.dtype
        return _rotated(x, cos, sin, 1)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        cos, sin = ctx.saved_tensors
        return _rotated(upstream[0], cos, sin, -1).to(ctx.dtype), None, None


def _rotated(x: Tensor, cos: Tensor, sin: Tensor, way: int) -> Tensor:
    out = x * cos
    (low, high), (out_low, out_high), (sin_low, sin_high) = (part.to(out.dtype).chunk(2, -1) for part in (x, out, sin))
    out_low.addcmul_(high, sin_low, value=-way)
    out_high.addcmul_(low, sin_high, value=way)
    return out


class Attention(nn.Module):
    """Queries come from block tokens alone, keys and values from the features H too: K = [W_k H; W_k x], V likewise."""

    def __init__(self, shape: DraftShape) -> None:
        super().__init__()
        self.head_dim = shape.head_dim
        width, kv_width = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
        self.q_proj = nn.Linear(shape.hidden_size, width, bias=shape.attention_bias)
        self.k_proj = nn.Linear(shape.hidden_size, kv_width, bias=shape.attention_bias)
        self.v_proj = nn.Linear(shape.hidden_size, kv_width, bias=shape.attention_bias)
        self.o_proj = nn.Linear(width, shape.hidden_size, bias=shape.attention_bias)
        self.q_norm = RMSNorm(shape.head_dim, eps=shape.rms_norm_eps)
        self.k_norm = RMSNorm(shape.head_dim, eps=shape.rms_norm_eps)

    def keys_values(self, x: Tensor, rotary: Rotary, spread: Pick = _as_it_is) -> KeysValues:
        """Of features or of block tokens x [sequences, tokens, hidden]: the same projections serve both."""
        keys = spread(self.k_norm(self._heads(self.k_proj(x)))).transpose(1, 2)
        return rotate(keys, rotary), spread(self._heads(self.v_proj(x))).transpose(1, 2)

    def forward(
        self, x: Tensor, rotary: Rotary, context: KeysValues, attend: Attend, spread: Pick, keep: Pick
    ) -> Tensor:
        """Of block tokens x [sequences, tokens, hidden], shaped like those that are kept."""
        queries = rotate(spread(self.q_norm(self._heads(self.q_proj(x)))).transpose(1, 2), rotary)
        read = attend(queries, context, self.keys_values(x, rotary, spread))
        out: Tensor = self.o_proj(keep(read.transpose(1, 2).flatten(2)))
        return out

    def _heads(self, x: Tensor) -> Tensor:
        """[sequences, tokens, heads * head_dim] -> [sequences, tokens, heads, head_dim]."""
        return x.view(*x.shape[:-1], -1, self.head_dim)


class MLP(nn.Module):
    """down(silu(gate(x)) * up(x)), token by token."""

    def __init__(self, shape: DraftShape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.up_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.down_proj = nn.Linear(shape.intermediate_size, shape.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class DecoderLayer(nn.Module):
    """Attention and MLP, a norm before each; only block tokens pass it, of features it makes keys and values."""

    def __init__(self, shape: DraftShape) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(shape.hidden_size, eps=shape.rms_norm_eps)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = RMSNorm(shape.hidden_size, eps=shape.rms_norm_eps)
        self.mlp = MLP(shape)

    def forward(
        self, x: Tensor, rotary: Rotary, context: KeysValues, attend: Attend, spread: Pick, keep: Pick
    ) -> Tensor:
        read = self.self_attn(self.input_layernorm(x), rotary, context, attend, spread, keep)
        x = keep(spread(x)) + read
        out: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


class Drafter(nn.Module):
    """All that is trained: `context` of the target's features, then `forward` over the blocks.

    Fresh weights are drawn by `generator`.
    """

    def __init__(self, shape: DraftShape, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.shape = shape
        # Gives up what a layer computed and computes it again in the backward pass: less memory, a third more time.
        self.recompute = False
        self.fc = nn.Linear(shape.num_taps * shape.hidden_size, shape.hidden_size, bias=False)
        self.hidden_norm = RMSNorm(shape.hidden_size, eps=shape.rms_norm_eps)
        self.layers = nn.ModuleList(DecoderLayer(shape) for _ in range(shape.num_layers))
        self.norm = RMSNorm(shape.hidden_size, eps=shape.rms_norm_eps)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=shape.initializer_range, generator=generator)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def context(self, taps: Tensor, rotary: Rotary) -> list[KeysValues]:
        """What each layer reads of the target's features [sequences, tokens, taps * hidden].

        H = RMSNorm(W_c [taps]) is fused once; it passes no layer's input_layernorm.
        """
        features = self.hidden_norm(self.fc(taps.to(self.fc.weight.dtype)))
        return [layer.self_attn.keys_values(features, rotary) for layer in self._decoder_layers()]

    def forward(
        self,
        x: Tensor,
        rotary: Rotary,
        context: list[KeysValues],
        attends: Attends,
        spread: Pick = _as_it_is,
        keep: Pick = _as_it_is,
    ) -> Tensor:
        """Final hidden states, ready for the target's head, of embedded block tokens x [sequences, tokens, hidden].

        Tokens that are the same are projected once in the first layer: `spread` makes block tokens of the rows of x.
        Those that `keep` leaves out end behind the last layer's attention.
        """
        x = x.to(self.fc.weight.dtype)
        last = self.shape.num_layers - 1
        for i, (layer, window) in enumerate(zip(self._decoder_layers(), self.shape.windows, strict=True)):
            picks = (spread if i == 0 else _as_it_is, keep if i == last else _as_it_is)
            if self.recompute and torch.is_grad_enabled():
                x = checkpoint(layer, x, rotary, context[i], attends[window], *picks, use_reentrant=False)
            else:
                x = layer(x, rotary, context[i], attends[window], *picks)
        out: Tensor = self.norm(x)
        return out

    def _decoder_layers(self) -> list[DecoderLayer]:
        return [layer for layer in self.layers if isinstance(layer, DecoderLayer)]


def attend_dense(visible: Tensor) -> Attend:
    """Attention under a mask [sequences, 1, queries, context + block tokens], True where visible."""

    def attend(queries: Tensor, context: KeysValues, block: KeysValues) -> Tensor:
        keys, values = (torch.cat(parts, dim=2) for parts in zip(context, block, strict=True))
        return F.scaled_dot_product_attention(
            queries, keys, values, attn_mask=visible, scale=1 / math.sqrt(queries.shape[-1]), enable_gqa=True
        )

    return attend

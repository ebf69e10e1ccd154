"""Keys and values of sequences that advance at their own pace.

Rows of a batch accept different numbers of tokens in a round of speculative decoding. Each row therefore writes at its
own positions into one buffer; what a rejected token left behind is overwritten when its position is reached again, and
is never seen before that, because a token sees positions up to its own only. So nothing is copied, cropped or padded,
and batched decoding gives what decoding one by one gives.
"""

import torch
from torch import Tensor

# Buffers grow by so many positions at a time: few copies, little attention over unused places.
_GROWTH = 64


class KeyValueCache:
    """Speaks the part of transformers' cache protocol that decoder layers use (`update`), each on its own device."""

    def __init__(self) -> None:
        self._layers: dict[int, tuple[Tensor, Tensor]] = {}
        self._positions = torch.empty(0)
        self._length = 0

    def seek(self, positions: Tensor) -> None:
        """Says where the tokens of the next pass stand: [sequences, n]."""
        self._positions = positions
        self._length = int(positions.max()) + 1

    def causal_mask(self) -> Tensor:
        """What the tokens of the next pass may see: [sequences, 1, n, length], True where visible."""
        keys = torch.arange(self._length, device=self._positions.device)
        return (keys <= self._positions[:, :, None]).unsqueeze(1)

    def update(
        self, keys: Tensor, values: Tensor, layer_idx: int, *_args: object, **_kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Stores keys and values [sequences, heads, n, head_dim] of one layer; returns all that the mask speaks of."""
        stored = self._layers.get(layer_idx)
        if stored is None or stored[0].shape[2] < self._length:
            stored = self._grown(stored, keys)
            self._layers[layer_idx] = stored
        places = self._positions[:, None, :, None].expand_as(keys).to(keys.device)
        stored[0].scatter_(2, places, keys)
        stored[1].scatter_(2, places, values)
        return stored[0][:, :, : self._length], stored[1][:, :, : self._length]

    def read(self, layer_idx: int, length: int) -> tuple[Tensor, Tensor]:
        """The first `length` positions of one layer, zeros where nothing was stored."""
        keys, values = self._layers[layer_idx]
        return keys[:, :, :length], values[:, :, :length]

    def move(self, sources: Tensor, places: Tensor) -> None:
        """Copies what stands at `sources` [sequences, n] to `places`, in every layer."""
        for keys_values in self._layers.values():
            for stored in keys_values:
                size = (-1, stored.shape[1], -1, stored.shape[3])
                moved = stored.gather(2, sources[:, None, :, None].expand(size).to(stored.device))
                stored.scatter_(2, places[:, None, :, None].expand(size).to(stored.device), moved)

    def keep_rows(self, rows: Tensor) -> None:
        """Drops every sequence but `rows`, in that order."""
        self._layers = {i: (keys[rows], values[rows]) for i, (keys, values) in self._layers.items()}

    def get_seq_length(self, _layer_idx: int = 0) -> int:
        return self._length

    def _grown(self, stored: tuple[Tensor, Tensor] | None, like: Tensor) -> tuple[Tensor, Tensor]:
        batch, heads, _, width = like.shape
        length = -(-self._length // _GROWTH) * _GROWTH
        fresh = (like.new_zeros(batch, heads, length, width), like.new_zeros(batch, heads, length, width))
        if stored is not None:
            for new, old in zip(fresh, stored, strict=True):
                new[:, :, : old.shape[2]] = old
        return fresh

"""Which sequences make up the batch of a step.

    bucket    sequences of like length, one a row, as many as the token budget lets in
    pack      several sequences a row, side by side, each blind to the others
    fixed     the same number of sequences in every batch, whatever their lengths

A plan follows from the seed and the epoch alone: a resumed run needs to know only at which step it is.
"""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from trainer.config import Config
from trainer.data import Sample
from trainer.errors import ConfigError
from trainer.target import Features

# Places of sequences, row by row.
Rows = list[list[int]]


@dataclass(frozen=True)
class Batch:
    """`tokens` [rows, longest], padded behind `lengths`; `response` marks the tokens of responses.

    Where rows hold several sequences, `begins` says of every token at which place of the row its own begins. `features`
    are there where they were captured before.
    """

    tokens: Tensor
    response: Tensor
    lengths: Tensor
    begins: Tensor | None = None
    features: Features | None = None

    @property
    def positions(self) -> Tensor:
        """Where each token stands in its own sequence: [1 or rows, longest]."""
        places = torch.arange(self.tokens.shape[1], device=self.tokens.device)[None]
        return places if self.begins is None else places - self.begins

    @property
    def num_sequences(self) -> int:
        if self.begins is None:
            return len(self.tokens)
        real = torch.arange(self.tokens.shape[1]) < self.lengths[:, None]
        return int(((self.positions.cpu() == 0) & real).sum())


class Plan:
    """Batches of all epochs. Every epoch has `per_epoch` of them."""

    def __init__(self, lengths: Sequence[int], config: Config) -> None:
        self._seed = config["seed"]
        budget, order = config["batch_tokens"], sorted(range(len(lengths)), key=lengths.__getitem__)
        longest = lengths[order[-1]]
        if longest > budget:
            raise ConfigError(
                f"batch_tokens: {budget} does not hold the longest sequence ({longest} tokens); raise it, "
                "or lower data.max_seq_len"
            )
        kind = config["batching"]
        # Rows that may stand together, and how many of them do.
        self._groups: list[tuple[Rows, int]]
        # The longest sequence of each bucket: a batch's tells which it came from.
        self.edges: list[int] = []
        if kind == "bucket":
            # By the bucket's longest, so that the number of batches does not hang on how they are shuffled.
            buckets = _buckets(order, config["num_buckets"])
            self._groups = [([[i] for i in bucket], budget // lengths[bucket[-1]]) for bucket in buckets]
            self.edges = sorted({lengths[bucket[-1]] for bucket in buckets})
        else:
            rows = packed(lengths, longest) if kind == "pack" else [[i] for i in order]
            self._groups = [(rows, budget // longest)]
        self.per_epoch = sum(-(-len(rows) // count) for rows, count in self._groups)

    def epoch(self, number: int) -> list[Rows]:
        """The batches of epoch `number`, counted from 0, in order."""
        rng = random.Random(seed_for(self._seed, "epoch", number))
        batches = []
        for rows, count in self._groups:
            shuffled = rng.sample(rows, len(rows))
            batches += [shuffled[i : i + count] for i in range(0, len(shuffled), count)]
        rng.shuffle(batches)
        return batches


def packed(lengths: Sequence[int], room: int) -> Rows:
    """All sequences in rows of at most `room` tokens: the longest first, each where it leaves the least room.

    Who shares a row stays the same in all epochs, which matters to nobody: they do not see each other.
    """
    rows: Rows = []
    by_room: list[list[int]] = [[] for _ in range(room + 1)]
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        left = next((left for left in range(lengths[i], room) if by_room[left]), room)
        row = by_room[left].pop() if by_room[left] else len(rows)
        if row == len(rows):
            rows.append([])
        rows[row].append(i)
        by_room[left - lengths[i]].append(row)
    return rows


def _buckets(order: list[int], count: int) -> list[list[int]]:
    count = min(count, len(order))
    edges = [len(order) * i // count for i in range(count + 1)]
    return [order[a:b] for a, b in pairwise(edges)]


def collate(samples: Sequence[Sample], device: torch.device) -> Batch:
    """One a row."""
    return collate_rows([[sample] for sample in samples], device)


def collate_rows(rows: Sequence[Sequence[Sample]], device: torch.device) -> Batch:
    lengths = torch.tensor([sum(map(len, row)) for row in rows])
    longest = int(lengths.max())
    tokens = torch.zeros(len(rows), longest, dtype=torch.long)
    response = torch.zeros(len(rows), longest, dtype=torch.bool)
    # Padding is a sequence of its own.
    begins = lengths[:, None].repeat(1, longest)
    for at, row in enumerate(rows):
        begin = 0
        for sample in row:
            end = begin + len(sample)
            tokens[at, begin:end] = sample.tokens
            response[at, begin:end] = sample.response
            begins[at, begin:end] = begin
            begin = end
    is_packed = any(len(row) > 1 for row in rows)
    return Batch(tokens.to(device), response.to(device), lengths, begins.to(device) if is_packed else None)


def seed_for(seed: int, purpose: str, number: int) -> int:
    """An independent seed for one purpose at one step: what is drawn there needs no state from before."""
    text = f"{seed} {purpose} {number}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()[:7], "big")

"""Which sequences make up the batch of a step.

Sequences are grouped by length, so that little of a batch is padding, and a batch holds as many as its token budget
lets in. The plan of an epoch follows from seed and epoch alone: a resumed run needs to know only at which step it is.
"""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from trainer.data import Sample
from trainer.errors import ConfigError


@dataclass(frozen=True)
class Batch:
    """`tokens` [sequences, longest], padded behind `lengths`; `response` marks the tokens of responses."""

    tokens: Tensor
    response: Tensor
    lengths: Tensor


class Plan:
    """Batches of all epochs, as lists of indices into the samples. Every epoch has `per_epoch` of them."""

    def __init__(self, lengths: Sequence[int], batch_tokens: int, num_buckets: int, seed: int) -> None:
        self._seed = seed
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        longest = lengths[order[-1]]
        if longest > batch_tokens:
            raise ConfigError(
                f"batch_tokens: {batch_tokens} does not hold the longest sequence ({longest} tokens); raise it, "
                "or lower data.max_seq_len"
            )
        num_buckets = min(num_buckets, len(order))
        edges = [len(order) * i // num_buckets for i in range(num_buckets + 1)]
        self._buckets = [order[a:b] for a, b in pairwise(edges)]
        # By the bucket's longest, so that the number of batches does not hang on how they are shuffled.
        self._sizes = [batch_tokens // lengths[bucket[-1]] for bucket in self._buckets]
        self.per_epoch = sum(-(-len(b) // n) for b, n in zip(self._buckets, self._sizes, strict=True))

    def epoch(self, number: int) -> list[list[int]]:
        """The batches of epoch `number`, counted from 0, in order."""
        rng = random.Random(seed_for(self._seed, "epoch", number))
        batches = []
        for bucket, size in zip(self._buckets, self._sizes, strict=True):
            shuffled = rng.sample(bucket, len(bucket))
            batches += [shuffled[i : i + size] for i in range(0, len(shuffled), size)]
        rng.shuffle(batches)
        return batches


def collate(samples: Sequence[Sample], device: torch.device) -> Batch:
    longest = max(map(len, samples))
    tokens = torch.zeros(len(samples), longest, dtype=torch.long)
    response = torch.zeros(len(samples), longest, dtype=torch.bool)
    for row, sample in enumerate(samples):
        tokens[row, : len(sample)] = sample.tokens
        response[row, : len(sample)] = sample.response
    lengths = torch.tensor([len(sample) for sample in samples])
    return Batch(tokens.to(device), response.to(device), lengths)


def seed_for(seed: int, purpose: str, number: int) -> int:
    """An independent seed for one purpose at one step: what is drawn there needs no state from before."""
    text = f"{seed} {purpose} {number}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()[:7], "big")

"""Greedy decoding by the target: token by token, and in blocks that a drafter or a copy of earlier text proposes.

All three give the same tokens; what differs is how many passes of the target they take. `accepted` counts a round's
tokens as z-lab does: the drafts that the target agrees with plus the one it adds, 1 to block_size.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from trainer.blocks import Anchors, visible
from trainer.cache import KeyValueCache
from trainer.metrics import leading_runs
from trainer.model import Drafter, attend_dense
from trainer.target import Target

# Finished rows leave the batch only every so many passes: dropping them copies the cache.
_SHRINK_EVERY = 16
# The longest suffix that lookup tries to find again.
_LOOKUP_NGRAM = 3


@dataclass
class Decoded:
    """What was written after a prompt; `accepted` has one entry a round of block decoding."""

    tokens: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)


def go_on() -> None:
    """What is called between passes where nobody may want to stop."""


@torch.no_grad()
def greedy(
    target: Target,
    prompts: Sequence[list[int]],
    budgets: Sequence[int],
    tail: int = 0,
    check_stop: Callable[[], None] = go_on,
) -> list[Decoded]:
    """The target's likeliest continuation of every prompt: to an end token or the budget, then `tail` tokens more."""
    rows = Rows(target, prompts, budgets, tail)
    hidden, _ = target.run(rows.prompts, rows.zeros(), rows.cache, tap=False)
    token = target.head(last_states(hidden, rows.lengths - 1)).argmax(-1)
    starts = rows.lengths
    while rows.take(token[:, None].tolist()):
        check_stop()
        if kept := rows.shrink():
            token, starts = token[kept], starts[kept]
        hidden, _ = target.run(token[:, None], starts, rows.cache, tap=False)
        token = target.head(hidden[:, 0]).argmax(-1)
        starts = starts + 1
    return rows.decoded


def begin(
    target: Target, drafter: Drafter, prompts: Sequence[list[int]], budgets: Sequence[int], block_size: int
) -> "tuple[Rows, DraftCache, Tensor, Tensor]":
    """The prompts as target and drafter have seen them, the first token behind each, and where that stands.

    The target has not seen that token yet: it opens the next block.
    """
    rows = Rows(target, prompts, budgets)
    drafts = DraftCache(target, drafter, block_size)
    hidden, taps = target.run(rows.prompts, rows.zeros(), rows.cache, tap=True)
    drafts.take(taps, rows.zeros())
    return rows, drafts, target.head(last_states(hidden, rows.lengths - 1)).argmax(-1), rows.lengths


def left(rows: "Rows", drafts: "DraftCache", token: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
    """`token` and `starts` of the rows that go on; now and then those that are done are dropped, by the caches too."""
    if kept := rows.shrink():
        drafts.cache.keep_rows(torch.tensor(kept, device=token.device))
        return token[kept], starts[kept]
    return token, starts


@torch.no_grad()
def speculative(
    target: Target,
    drafter: Drafter,
    prompts: Sequence[list[int]],
    budgets: Sequence[int],
    block_size: int,
    check_stop: Callable[[], None] = go_on,
) -> list[Decoded]:
    """The same continuation, a block at a time. The last block is not cut at the budget."""
    rows, drafts, token, starts = begin(target, drafter, prompts, budgets, block_size)
    going = rows.take(token[:, None].tolist())
    while going:
        check_stop()
        token, starts = left(rows, drafts, token, starts)
        block = torch.cat((token[:, None], drafts.propose(token, starts)), dim=1)
        hidden, taps = target.run(block, starts, rows.cache, tap=True)
        drafts.take(taps, starts)
        choices = target.head(hidden).argmax(-1)
        agreed = leading_runs(block[:, 1:] == choices[:, :-1])
        token = choices.gather(1, agreed[:, None])[:, 0]
        starts = starts + agreed + 1
        # Where a draft was right it is the target's choice, and the choice behind the last right one is the bonus.
        going = rows.take([row[: n + 1] for row, n in zip(choices.tolist(), agreed.tolist(), strict=True)], count=True)
    return rows.decoded


def lookup(prompt: list[int], written: list[int], budget: int, block_size: int) -> list[int]:
    """`accepted` of every round if drafts were copied from behind the latest earlier place that ends like the text.

    Needs no model: `written` is what the target writes after `prompt`, block_size tokens beyond the budget included.
    """
    accepted = []
    text = prompt + written[:1]
    goal = len(prompt) + budget
    # Every run of up to _LOOKUP_NGRAM tokens -> where the text goes on behind its latest place.
    behind: dict[tuple[int, ...], int] = {}
    indexed = 1
    while len(text) < goal:
        for end in range(indexed, len(text)):
            for size in range(1, min(_LOOKUP_NGRAM, end) + 1):
                behind[tuple(text[end - size : end])] = end
        indexed = len(text)
        draft = _copy(text, behind, block_size - 1)
        truth = written[len(text) - len(prompt) :]
        agreed = next((i for i, token in enumerate(draft) if token != truth[i]), len(draft))
        accepted.append(agreed + 1)
        text += truth[: agreed + 1]
    return accepted


def _copy(text: list[int], behind: dict[tuple[int, ...], int], count: int) -> list[int]:
    """`count` tokens from behind the longest suffix that was seen before; they may run into themselves, as loops do."""
    for size in range(_LOOKUP_NGRAM, 0, -1):
        place = behind.get(tuple(text[-size:]))
        if place is not None:
            period = text[place:]
            return (period * (count // len(period) + 1))[:count]
    return []


class DraftCache:
    """The drafter's side of a decode: the keys and values of the features, and the proposals made from them."""

    def __init__(self, target: Target, drafter: Drafter, block_size: int) -> None:
        self.cache = KeyValueCache()
        self._target, self._drafter = target, drafter
        self._slots = torch.arange(block_size, device=target.device)

    def take(self, taps: Tensor | None, starts: Tensor) -> None:
        """Stores the features of a pass that began at `starts`; those of rejected tokens are overwritten in time."""
        assert taps is not None
        positions = starts[:, None] + torch.arange(taps.shape[1], device=starts.device)
        self.cache.seek(positions)
        for i, (keys, values) in enumerate(self._drafter.context(taps, self._target.rotary(positions))):
            self.cache.update(keys, values, i)

    def propose(self, token: Tensor, starts: Tensor) -> Tensor:
        """block_size - 1 drafts behind `token`, which stands at `starts`: [sequences, block_size - 1]."""
        return self.scores(token, starts).argmax(-1)

    def scores(self, token: Tensor, starts: Tensor) -> Tensor:
        """What the drafter thinks of every token for every slot: [sequences, block_size - 1, vocabulary]."""
        target, size = self._target, len(self._slots)
        inputs = torch.where(self._slots > 0, target.mask_token_id, token[:, None])
        length = int(starts.max())
        anchors = Anchors(starts[:, None], torch.ones_like(starts[:, None], dtype=torch.bool))
        windows = set(self._drafter.shape.windows)
        hidden = self._drafter(
            target.embed(inputs),
            target.rotary(starts[:, None] + self._slots),
            [self.cache.read(i, length) for i in range(self._drafter.shape.num_layers)],
            {window: attend_dense(visible(anchors, length, size, window)) for window in windows},
        )
        return target.logits(hidden[:, 1:])


class Rows:
    """The sequences of one batch: what they have written, which of them go on, and the target's cache of those."""

    def __init__(self, target: Target, prompts: Sequence[list[int]], budgets: Sequence[int], tail: int = 0) -> None:
        device = target.device
        self.cache = KeyValueCache()
        self.decoded = [Decoded() for _ in prompts]
        self.lengths = torch.tensor([len(p) for p in prompts], device=device)
        # Padded at the end: the padding's places are written over as decoding goes on.
        self.prompts = torch.zeros(len(prompts), int(self.lengths.max()), dtype=torch.long, device=device)
        for row, prompt in enumerate(prompts):
            self.prompts[row, : len(prompt)] = torch.tensor(prompt, device=device)
        self._ends = target.end_token_ids
        self._goals = [budget + tail for budget in budgets]
        self._tail = tail
        self._live = list(range(len(prompts)))
        self._passes = 0

    def zeros(self) -> Tensor:
        return torch.zeros_like(self.lengths)

    def take(self, new: Iterable[list[int]], *, count: bool = False) -> bool:
        """Adds new tokens to every row of the batch that is not done; False once all are."""
        going = False
        for row, tokens in zip(self._live, new, strict=True):
            decoded = self.decoded[row]
            if len(decoded.tokens) >= self._goals[row]:
                continue
            before = len(decoded.tokens)
            decoded.tokens += tokens
            if count:
                decoded.accepted.append(len(tokens))
            ends = [i for i, token in enumerate(tokens) if token in self._ends]
            if ends:
                self._goals[row] = min(self._goals[row], before + ends[0] + 1 + self._tail)
            going = going or len(decoded.tokens) < self._goals[row]
        self._passes += 1
        return going

    def shrink(self) -> list[int]:
        """The rows of the batch to keep, now and then, when some are done; else nothing."""
        if self._passes % _SHRINK_EVERY:
            return []
        kept = [i for i, row in enumerate(self._live) if len(self.decoded[row].tokens) < self._goals[row]]
        if len(kept) == len(self._live):
            return []
        self._live = [self._live[i] for i in kept]
        self.cache.keep_rows(torch.tensor(kept))
        return kept


def last_states(hidden: Tensor, places: Tensor) -> Tensor:
    """The state at one place of each sequence."""
    return hidden[torch.arange(len(hidden), device=hidden.device), places]

"""What training promises, each put to the test on a config's own target: `selfcheck` says which, and how.

Trains a drafter of its own; writes nothing into the run's folder.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trainer import checkpoint, config, drafts
from trainer.batches import Batch, collate
from trainer.blocks import Anchors, every_anchor
from trainer.data import answered
from trainer.dataset import some_prompts
from trainer.decode import greedy, speculative
from trainer.errors import ConfigError
from trainer.evaluate import HeldOut, lossless_share, micro_tau, walks
from trainer.loss import Scoring, auto_gamma
from trainer.model import Drafter
from trainer.step import Objective
from trainer.target import Features, Target
from trainer.zlab import draft_config, draft_shape, windows

# Texts to learn by heart, how long they are, and when that is done or given up.
_TEXTS, _TEXT_TOKENS = 2, 48
_LEARNT, _MAX_STEPS, _LR = 0.99, 400, 5e-3
# Decoding in bfloat16 may break ties otherwise than a pass over the whole text does.
_TOLERANCE = {torch.float32: 1e-9, torch.bfloat16: 0.05}


@dataclass(frozen=True)
class Verdict:
    name: str
    holds: bool
    sentence: str


class SelfCheck:
    """The checks share a target, two texts that it writes, and the drafter that learns them."""

    def __init__(self, told: config.Config) -> None:
        torch.manual_seed(0)
        torch.set_num_threads(told["threads"] or torch.get_num_threads())
        self.target = Target(told)
        self.block_size: int = told["block_size"]
        shape = draft_shape(self.target, windows(told))
        self.drafter = Drafter(shape, torch.Generator().manual_seed(0)).to(self.target.device)
        scoring = Scoring(auto_gamma(self.block_size), "uniform")
        self.objective = Objective(self.target, self.drafter, self.block_size, scoring)
        self.texts = self._texts(told)
        samples = [answered(row.prompt + row.response, len(row.prompt)) for row in self.texts]
        self.batch = collate(samples, self.target.device)

    def verdicts(self) -> list[Callable[[], Verdict]]:
        """In this order: `labels` teaches the drafter that the later ones decode with."""
        return [self.taps, self.leak, self.labels, self.export, self.gap]

    def taps(self) -> Verdict:
        heard = self.objective.features(self.batch)[0].taps
        out = self.target.model(input_ids=self.batch.tokens, output_hidden_states=True)
        named = torch.cat([out.hidden_states[i + 1].to(heard.device) for i in self.target.layer_ids], dim=-1)
        real = _real(self.batch)
        off = float((heard - named)[real].abs().max())
        scale = float(named[real].abs().max())
        ids = self.target.layer_ids
        sentence = f"layers {ids} are hidden_states {[i + 1 for i in ids]}, off by {off:.1g}"
        return Verdict("taps", off <= 1e-5 * scale, sentence)

    def leak(self) -> Verdict:
        text = self.texts[0]
        anchor = len(text.prompt) + len(text.response) // 2
        taps = self.objective.features(self.batch)[0].taps
        states = self._states(taps, anchor)
        spoiled = taps.clone()
        spoiled[:, anchor:] = 1e3
        leaks = float((self._states(spoiled, anchor) - states).abs().max())
        spoiled[:, anchor - 1] = 1e3
        hears = float((self._states(spoiled, anchor) - states).abs().max())
        sentence = f"spoilt features from the anchor on change a block by {leaks:.1g}, those before it by {hears:.1g}"
        return Verdict("leak", leaks == 0 and hears > 0, sentence)

    def labels(self) -> Verdict:
        steps, accuracy = self._learn_by_heart()
        tau = micro_tau([row.accepted for row in self._decode(self.drafter)]) or 1.0
        learnt = f"accuracy {accuracy:.2f} after {steps} steps on {len(self.texts)} texts"
        sentence = f"{learnt}; decoding them takes {tau:.2f} of {self.block_size} tokens a pass"
        # A drafter of the neighbour's tokens takes 1.
        return Verdict("labels", accuracy >= _LEARNT and tau > self.block_size / 2, sentence)

    def export(self) -> Verdict:
        told = draft_config(self.target, self.drafter.shape, self.block_size)
        with tempfile.TemporaryDirectory() as folder:
            place = checkpoint.write(Path(folder), checkpoint.Saved(0, self.drafter, told, {}), 1)
            again = drafts.read(place).drafter().to(self.target.device)
        one, two = (self._decode(drafter) for drafter in (self.drafter, again))
        taps, anchor = self.objective.features(self.batch)[0].taps, len(self.texts[0].prompt)
        off = float((self._states(taps, anchor) - self._states(taps, anchor, again)).abs().max())
        same = [a.accepted == b.accepted for a, b in zip(one, two, strict=True)]
        sentence = f"read back, states differ by {off:.1g}; {sum(same)} of {len(same)} decodes are the same"
        return Verdict("export", off == 0 and all(same), sentence)

    def gap(self) -> Verdict:
        decoded = self._decode(self.drafter)
        tau = micro_tau([row.accepted for row in decoded]) or 1.0
        forced = micro_tau(walks([self.objective], self.texts)[0]) or 1.0
        lossless = lossless_share(decoded, self.texts)
        limit = _TOLERANCE.get(self.target.model.dtype, 0.05) * forced
        sentence = f"decoding takes {tau:.3f} tokens a pass, the texts promise {forced:.3f}; lossless {lossless:.0%}"
        exact = self.target.model.dtype == torch.float32
        return Verdict("gap", abs(tau - forced) <= limit and (lossless == 1 or not exact), sentence)

    def _texts(self, told: config.Config) -> list[HeldOut]:
        prompts = some_prompts(told, self.target, 4 * _TEXTS)
        beyond = self.block_size
        written = greedy(self.target, prompts, [_TEXT_TOKENS] * len(prompts), tail=beyond)
        texts = [HeldOut(p, w.tokens[:-beyond], w.tokens[-beyond:]) for p, w in zip(prompts, written, strict=True)]
        long = [text for text in texts if len(text.response) > self.block_size][:_TEXTS]
        if not long:
            least = f"{self.block_size + 1} tokens"
            raise ConfigError(f"data.path: to none of its first {len(prompts)} prompts does the target write {least}")
        return long

    def _learn_by_heart(self) -> tuple[int, float]:
        anchors = every_anchor(self.batch.response, 1)
        features, _ = self.objective.features(self.batch)
        optimizer = torch.optim.AdamW(self.drafter.parameters(), lr=_LR, weight_decay=0.0)
        accuracy = 0.0
        for step in range(_MAX_STEPS):
            loss, counts = self.objective.loss(self.batch, features, anchors)
            accuracy = counts.scalars()["accuracy"] or 0.0
            if accuracy >= _LEARNT:
                return step, accuracy
            optimizer.zero_grad()
            (loss / counts.weight).backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self.drafter.parameters(), 1.0)
            optimizer.step()
        return _MAX_STEPS, accuracy

    def _decode(self, drafter: Drafter) -> list[Any]:
        prompts, budgets = [t.prompt for t in self.texts], [len(t.response) for t in self.texts]
        return speculative(self.target, drafter, prompts, budgets, self.block_size)

    @torch.no_grad()
    def _states(self, taps: Tensor, anchor: int, drafter: Drafter | None = None) -> Tensor:
        """The drafter's final states of the block at `anchor` of the first text, as training makes them."""
        seen: list[Tensor] = []
        drafter = drafter or self.drafter
        hook = drafter.norm.register_forward_hook(lambda _norm, _inputs, out: seen.append(out))
        positions = torch.full((len(taps), 1), anchor, device=taps.device)
        objective = Objective(self.target, drafter, self.block_size, self.objective.scoring)
        objective.loss(self.batch, Features(taps), Anchors(positions, torch.ones_like(positions, dtype=torch.bool)))
        hook.remove()
        return seen[0][0]


def _real(batch: Batch) -> Tensor:
    """Where tokens are that are no padding."""
    places = torch.arange(batch.tokens.shape[1], device=batch.tokens.device)
    return places < batch.lengths.to(batch.tokens.device)[:, None]

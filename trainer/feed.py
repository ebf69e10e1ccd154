"""Which batches make up an optimizer step, whoever computes them.

Batches are numbered from 0 over all epochs, and step i takes `per_step` of them from number i * per_step on. So one
process makes the same steps as eight, and a run may go on with another number of them.
"""

from collections.abc import Iterator, Sequence

import torch

from trainer.batches import Batch, Plan, Rows, collate, collate_rows
from trainer.captured import Captured
from trainer.config import Config
from trainer.data import Sample
from trainer.ranks import Ranks


class Feed:
    """The batches of a run on this process's device."""

    def __init__(
        self,
        samples: Sequence[Sample],
        config: Config,
        ranks: Ranks,
        device: torch.device,
        captured: Captured | None = None,
    ) -> None:
        self._samples, self._ranks, self._device, self._captured = samples, ranks, device, captured
        lengths = [len(sample) for sample in samples]
        self._plan = Plan(lengths, config)
        self.edges = self._plan.edges
        self.per_step: int = ranks.count if config["micro_batches"] == "auto" else config["micro_batches"]
        passes = -(-config["epochs"] * self._plan.per_epoch // self.per_step)
        self.total_steps: int = config["total_steps"] or passes
        self._epoch: tuple[int, list[Rows]] = (-1, [])

    def epochs(self, step: int) -> float:
        """Passes over the data after so many steps."""
        return step * self.per_step / self._plan.per_epoch

    def batches(self, index: int) -> Iterator[tuple[int, Batch]]:
        """This process's batches of optimizer step `index`, counted from 0, each with its number."""
        for number in self._numbers(index):
            rows = self._rows(number)
            samples = [[self._samples[i] for i in row] for row in rows]
            yield number, self._filled(collate_rows(samples, self._device), rows)

    def alone(self, index: int) -> Iterator[tuple[list[int], Batch]]:
        """The sequences of these batches, few at a time and one a row, with their lines of the data file."""
        for number in self._numbers(index):
            for row in self._rows(number):
                samples = [self._samples[i] for i in row]
                batch = self._filled(collate(samples, self._device), [[i] for i in row])
                yield [sample.line for sample in samples], batch

    def _filled(self, batch: Batch, rows: Rows) -> Batch:
        return batch if self._captured is None else self._captured.fill(batch, rows)

    def _numbers(self, index: int) -> list[int]:
        return [index * self.per_step + place for place in self._ranks.share(self.per_step)]

    def _rows(self, number: int) -> Rows:
        epoch, place = divmod(number, self._plan.per_epoch)
        if self._epoch[0] != epoch:
            self._epoch = (epoch, self._plan.epoch(epoch))
        return self._epoch[1][place]

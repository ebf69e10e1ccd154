"""Steps that taught nothing: what is said of them, and when a run that goes on like that ends."""

from collections.abc import Callable

from trainer.engine import Step
from trainer.errors import MemoryShortError, NonFiniteError


class Faults:
    """Counts them. A run ends after `limit` steps in a row that were not finite, or that did not fit into memory."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._num_nonfinite = self._num_empty = self._num_spilled = self._num_without_room = 0

    def judge(self, number: int, step: Step, spilled: list[str], spoiled_lines: Callable[[], list[int]]) -> str | None:
        """What there is to say of optimizer step `number`, if anything; raises RunError at the limit.

        `spilled` are the batches, of all processes, that did not fit into memory. `spoiled_lines` finds the lines of
        the data whose features are not finite; asked at the first such step only.
        """
        if spilled:
            return self._judge_spilled(number, step, spilled)
        self._num_without_room = 0
        if step.loss is None:
            self._num_empty += 1
            return f"step {number}: no slot is supervised; the step changed no weight ({self._num_empty} such so far)"
        if step.is_finite:
            self._num_nonfinite = 0
            return None
        self._num_nonfinite += 1
        if self._num_nonfinite >= self._limit:
            raise NonFiniteError(
                f"loss or gradient was not finite for {self._num_nonfinite} steps in a row, up to step {number}; "
                "lower lr or look for bad rows, then resume from the last checkpoint"
            )
        if self._num_nonfinite > 1:
            return None
        text = f"step {number}: loss or gradient is not finite; the step changed no weight"
        lines = spoiled_lines()
        if lines:
            text += f"; the target's features are not finite on data lines {', '.join(map(str, lines))}"
        return text

    def _judge_spilled(self, number: int, step: Step, spilled: list[str]) -> str:
        self._num_spilled += len(spilled)
        self._num_without_room = 0 if step.stepped else self._num_without_room + 1
        if self._num_without_room >= self._limit:
            raise MemoryShortError(
                f"no batch fitted into memory for {self._limit} steps in a row, up to step {number}; "
                "lower batch_tokens or num_anchors, then resume"
            )
        what = f"a batch of {spilled[0]}" if len(spilled) == 1 else f"{len(spilled)} batches, of {', '.join(spilled)},"
        return f"step {number}: {what} did not fit into memory and was skipped ({self._num_spilled} such so far)"

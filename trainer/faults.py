"""Steps that taught nothing: what is said of them, and when a run that goes on like that ends."""

from collections.abc import Callable

from trainer.engine import Step
from trainer.errors import NonFiniteError


class Faults:
    """Counts them. A run ends after `limit` steps in a row that were not finite."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._num_nonfinite = self._num_empty = 0

    def judge(self, number: int, step: Step, spoiled_lines: Callable[[], list[int]]) -> str | None:
        """What there is to say of optimizer step `number`, if anything; raises NonFiniteError at the limit.

        `spoiled_lines` finds the lines of the data whose features are not finite; asked at the first such step only.
        """
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

"""Records of a run that trains nothing: what it has done is counted as steps, its speed is in tokens."""

import time

from trainer.log import Log
from trainer.records import rounded

_SECONDS_BETWEEN_RECORDS = 2.0


class Progress:
    """`step` counts what is done, over all attempts."""

    def __init__(self, log: Log, step: int) -> None:
        self._log, self.step = log, step
        self._began = time.monotonic()
        self._lengths: list[int] = []

    def add(self, lengths: list[int]) -> None:
        """Things of so many tokens each are done."""
        self.step += len(lengths)
        self._lengths += lengths
        if time.monotonic() - self._began > _SECONDS_BETWEEN_RECORDS:
            self.close()

    def close(self) -> None:
        """The record of what came since the last one."""
        if self._lengths:
            now, tokens = time.monotonic(), sum(self._lengths)
            self._log.write(
                "train",
                step=self.step,
                avg_batch_size=len(self._lengths),
                avg_seq_len=rounded(tokens / len(self._lengths)),
                tokens=tokens,
                tok_per_sec=rounded(tokens / (now - self._began)),
            )
            self._began, self._lengths = now, []

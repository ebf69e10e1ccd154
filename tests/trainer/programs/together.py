"""Two processes write the answers and capture the features, and stop in the middle of either: together, then go on."""

import os
import signal
import sys
from pathlib import Path
from unittest.mock import patch

import torch

from tests.trainer.trainer_setup import checked
from trainer.capture import capture
from trainer.errors import Interrupted
from trainer.log import Log
from trainer.preparation import prepare_data
from trainer.progress import Progress
from trainer.ranks import Ranks
from trainer.stop import Stop


def settings(run_dir: Path, rows: Path, target: Path, **changes):
    told = {"target": str(target), "target_layer_ids": [1, 3], "data": {"path": str(rows), "generate_batch": 3}}
    return checked(run_dir, **{**told, "batch_tokens": 64, **changes})


def stopped_and_resumed(kind, config, ranks: Ranks) -> None:
    add = Progress.add

    def add_and_signal(self: Progress, lengths: list[int]) -> None:
        add(self, lengths)
        if self.step > 5:
            os.kill(os.getpid(), signal.SIGTERM)

    for is_first_attempt in (True, False):
        run_dir = Path(config["run_dir"])
        run_dir.mkdir(exist_ok=True)
        stop = Stop()
        stop.listen()
        with Log(run_dir / "train_log.jsonl", ranks.index) as log:
            if not is_first_attempt:
                kind(config, log, stop, ranks)
                return
            try:
                with patch.object(Progress, "add", add_and_signal):
                    kind(config, log, stop, ranks)
                raise AssertionError("was not stopped")
            except Interrupted:
                pass


def main(folder: Path, target: Path) -> None:
    torch.set_num_threads(1)
    ranks = Ranks()
    ranks.join(torch.device("cpu"))
    prepared = folder / "prepared"
    stopped_and_resumed(prepare_data, settings(prepared, folder / "rows.jsonl", target, kind="prepare"), ranks)
    config = settings(folder / "captured", prepared / "sequences", target, kind="capture", teacher="final_hidden")
    stopped_and_resumed(capture, config, ranks)
    ranks.leave()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

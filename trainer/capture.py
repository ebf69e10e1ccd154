"""kind = "capture": the features of all training sequences, once, for runs that then need not run the target.

Some 41 KB a token for an 8B target with five taps: a size limit (`features.max_gb`) keeps the first sequences only.
Stopped, it goes on where it was; its `train` records count sequences as steps. Several processes take a batch each, and
write them into one file: who wrote what makes no difference to it.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from trainer.batches import collate
from trainer.captured import Manifest, Writing
from trainer.config import Config
from trainer.dataset import some, training_sequences
from trainer.log import Log
from trainer.progress import Progress
from trainer.ranks import Ranks
from trainer.records import start_record
from trainer.sequences import Sequences
from trainer.stop import Stop
from trainer.target import Target

# Batches of a process between two points to go on from: one costs a wait for the disk.
_BATCHES_A_COMMIT = 8


def capture(config: Config, log: Log, stop: Stop, ranks: Ranks) -> None:
    """Fills `features/`; raises Interrupted when stopped, and goes on from there the next time."""
    target = Target(config, ranks.device(config["device"]))
    sequences = training_sequences(config, target, stop.check, ranks)
    _capture(config, log, stop, ranks, target, sequences)


def of(config: Config, target: Target, sequences: Sequences) -> Manifest:
    """What a capture for this config is one of; how many sequences it holds is not said yet."""
    return Manifest(
        target=target.fingerprint(),
        layer_ids=target.layer_ids,
        has_final=config["teacher"] == "final_hidden",
        sequences=sequences.manifest.digest,
        dtype=str(target.model.dtype).removeprefix("torch."),
        hidden_size=target.config.hidden_size,
        count=len(sequences),
    )


def _capture(config: Config, log: Log, stop: Stop, ranks: Ranks, target: Target, sequences: Sequences) -> None:
    manifest = of(config, target, sequences)
    begins = [0, *accumulate(sequences.lengths)]
    if config["features.max_gb"] is not None:
        room = int(config["features.max_gb"] * 2**30) // manifest.bytes_a_token
        begins = begins[: bisect_right(begins, room)]
    manifest = Manifest(**{**manifest.__dict__, "count": len(begins) - 1})
    place = Path(config["run_dir"]) / "features"
    writing = Writing(place, manifest, begins, ranks)
    progress = Progress(log, writing.manifest.done)
    config = {**config, "total_steps": manifest.count}
    log.write("start", **start_record(config, target, sequences.manifest.digest, ranks.count, progress.step or None))
    if manifest.count < len(sequences):
        left = len(sequences) - manifest.count
        log.write("warn", reason=f"sequences left out: {left} (beyond features.max_gb = {config['features.max_gb']})")
    order = sorted(range(manifest.count), key=lambda i: (-sequences.lengths[i], i))
    todo = _batches(order[progress.step :], sequences, config["batch_tokens"])
    for number, batches in enumerate(some(todo, ranks.count), 1):
        for batch in batches[ranks.index : ranks.index + 1]:
            tokens = collate([sequences[i] for i in batch], target.device).tokens
            features = target.features_of(tokens, final=manifest.has_final)
            for row, i in enumerate(batch):
                writing.write(i, features[row, : sequences.lengths[i]])
        progress.add([sequences.lengths[i] for batch in batches for i in batch])
        is_last = progress.step == manifest.count
        stopping = ranks.any(stop.asked)
        if number % _BATCHES_A_COMMIT == 0 or is_last or stopping:
            writing.commit(progress.step)
        if stopping and not is_last:
            stop.end()
    writing.close()
    progress.close()
    size = sum(file.stat().st_size for file in place.iterdir())
    log.write("checkpoint", step=progress.step, path=place.name, bytes=size)
    if ranks.is_first:
        print(f"{place}: features of {manifest.count} sequences, {size / 2**30:.2f} GiB", flush=True)


def _batches(order: list[int], sequences: Sequences, budget: int) -> Iterator[list[int]]:
    """The longest first, as many at a time as the budget lets in, and one at least."""
    at = 0
    while at < len(order):
        count = max(1, budget // sequences.lengths[order[at]])
        yield order[at : at + count]
        at += count

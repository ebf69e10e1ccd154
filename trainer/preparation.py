"""kind = "prepare": the answers that the target gives to the rows of `data.path`, kept as sequences to train on.

Days of work for a large target, so it is a run of its own: every answer is on the disk before the next is asked for,
and a run that is stopped goes on where it was. Its `train` records count answers as steps. What it makes, `sequences/`
in its folder, is a `data.path` of other runs.
"""

from pathlib import Path
from typing import Any

from trainer.config import Config, nest
from trainer.dataset import build, rows_path
from trainer.log import Log
from trainer.pretrained import fingerprint, folder, load_tokenizer
from trainer.progress import Progress
from trainer.ranks import Ranks
from trainer.regenerate import InProcess, Writer
from trainer.rows import num_wanted
from trainer.sequences import Sequences, manifest_of
from trainer.server import Server
from trainer.stop import Stop
from trainer.target import Target


def prepare_data(config: Config, log: Log, stop: Stop, ranks: Ranks) -> None:
    """Makes the sequences; raises Interrupted when stopped, and goes on from there the next time."""
    tokenizer = load_tokenizer(folder(config))
    if not config["data.server"]:
        target = Target(_untapped(config), ranks.device(config["device"]))
        with InProcess(target, config["data.generate_batch"], ranks, stop.check) as writer:
            if ranks.is_first:
                _prepare(config, log, stop, tokenizer, writer)
    elif ranks.is_first:
        _prepare(config, log, stop, tokenizer, Server(config, tokenizer))
    ranks.wait()


def _prepare(config: Config, log: Log, stop: Stop, tokenizer: Any, writer: Writer) -> None:
    place = Path(config["run_dir"]) / "sequences"
    progress = Progress(log, _num_kept(place.parent / "responses.jsonl"))
    is_resumed = progress.step > 0 or manifest_of(place) is not None
    resumed: dict[str, Any] = {"resumed_from_step": progress.step} if is_resumed else {}
    config = {**config, "total_steps": num_wanted(rows_path(config), config)}
    target = {"path": str(folder(config)), "fingerprint": fingerprint(folder(config))}
    log.write("start", run_id=config["run_id"], schema=1, config=nest(config), target=target, **resumed)
    build(config, tokenizer, writer, place, stop.check, progress.add)
    progress.close()
    made = Sequences(place).manifest
    for note in made.notes:
        log.write("warn", step=progress.step, reason=note)
    size = sum(file.stat().st_size for file in place.iterdir())
    log.write("checkpoint", step=progress.step, path=place.name, bytes=size)
    told = f"{made.num_sequences} sequences, {made.num_tokens} tokens, {made.num_response_tokens} of answers"
    print(f"{place}: {told}", flush=True)


def _untapped(config: Config) -> Config:
    """Nobody listens to the target here: whichever layers a drafter would want, they need not be there."""
    return {**config, "target_layer_ids": [0], "fc_layers": "all"}


def _num_kept(place: Path) -> int:
    """Answers that an earlier attempt left: every line but the first, which says whose they are."""
    if not place.exists():
        return 0
    with place.open("rb") as lines:
        return max(0, sum(1 for _ in lines) - 1)

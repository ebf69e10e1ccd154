"""kind = "evaluate": drafters side by side, on the same prompts and the same hidden states of the target.

One `eval` record a drafter, in the order of `checkpoints`. Nothing is trained, and nothing is kept but the responses.
"""

from pathlib import Path
from typing import Any

from trainer import drafts
from trainer.config import Config
from trainer.dataset import prepare
from trainer.drafts import Draft
from trainer.errors import ConfigError
from trainer.evaluate import evaluate, sentence
from trainer.log import Log
from trainer.loss import Scoring, auto_gamma
from trainer.ranks import Ranks
from trainer.records import start_record
from trainer.step import Objective
from trainer.stop import Stop
from trainer.target import Target
from trainer.zlab import draft_config, draft_shape


def compare(config: Config, log: Log, stop: Stop, ranks: Ranks) -> None:
    """Judges every drafter of `checkpoints`; raises Interrupted when stopped, and then begins anew."""
    if not config["checkpoints"]:
        raise ConfigError('checkpoints: kind = "evaluate" needs at least one folder of a drafter')
    read = [drafts.read(Path(folder)) for folder in config["checkpoints"]]
    config = _resolved(config, read)
    target = Target(config, ranks.device(config["device"]))
    objectives = [_objective(target, draft) for draft in read]
    data = prepare(config, target, stop.check, ranks)
    if ranks.is_first:
        log.write("start", **start_record(config, target, data.digest, ranks.count, None))
        for note in data.notes:
            log.write("warn", reason=note)
        few = config["eval.num_prompts"]
        trees = config["eval.ddtree"] != "never"
        told = evaluate(
            objectives,
            data.held_out,
            config["eval.anchor_stride"],
            few,
            trees=trees,
            at_a_time=config["data.generate_batch"],
            check_stop=stop.check,
        )
        for draft, name, (_, fields) in zip(read, names(read), told, strict=True):
            log.write("eval", step=_step(draft), **{**fields, "name": name}, path=str(draft.path))
            print(f"{name}: {sentence(fields)}", flush=True)
    ranks.wait()


def names(read: list[Draft]) -> list[str]:
    """Each folder's path from where they begin to differ, and at least its last two parts."""
    parts = [[part for part in draft.path.parts if part != "checkpoints"] for draft in read]
    shared = 0
    while all(len(p) > shared + 2 and p[shared] == parts[0][shared] for p in parts):
        shared += 1
    return ["/".join(p[shared:]) for p in parts]


def _resolved(config: Config, read: list[Draft]) -> dict[str, Any]:
    """The config with what the drafters say at the places where a training run would say it."""
    return {
        **config,
        "target_layer_ids": sorted({i for draft in read for i in draft.layer_ids}),
        "fc_layers": "all",
        "mask_token_id": read[0].told["dflash_config"]["mask_token_id"],
        # Prompt lookup is judged by so many tokens beyond a response.
        "block_size": max(draft.block_size for draft in read),
        "gamma": auto_gamma(max(draft.block_size for draft in read)),
    }


def _objective(target: Target, draft: Draft) -> Objective:
    view = target.listening(draft.layer_ids, draft.told["dflash_config"]["mask_token_id"])
    built_for_it = draft_shape(view, drafts.shape_of(draft.told).windows)
    drafts.check_target(draft, draft_config(view, built_for_it, draft.block_size), "checkpoints")
    drafter = draft.drafter().to(target.device).eval().requires_grad_(False)
    return Objective(view, drafter, draft.block_size, Scoring(auto_gamma(draft.block_size)))


def _step(draft: Draft) -> int | None:
    """The optimizer step that a checkpoint of ours was made after."""
    name = draft.path.name.removeprefix("step-")
    return int(name) if name.isdecimal() and name != draft.path.name else None

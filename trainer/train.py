"""The loop.

Order within a step that is due for everything: train record, evaluation, checkpoint, stop. So whatever a checkpoint
follows is in the log, and a resumed run repeats no evaluation.
"""

import math
import time
from pathlib import Path

import torch

from trainer import checkpoint, schedule
from trainer.batches import Batch, Plan, collate, seed_for
from trainer.blocks import draw_anchors
from trainer.config import Config, nest
from trainer.dataset import prepare
from trainer.errors import NonFiniteError
from trainer.evaluate import evaluate
from trainer.log import Log
from trainer.loss import make_scoring
from trainer.model import Drafter
from trainer.optimizer import make_optimizer
from trainer.records import batch_fields, rounded, score_fields, sparse_fields, start_record
from trainer.step import Objective, noisy
from trainer.stop import Stop
from trainer.target import Target
from trainer.zlab import draft_config, draft_shape, windows

_SECONDS_BETWEEN_LINES = 10.0


def train(config: Config, log: Log, stop: Stop) -> None:
    """Runs to the last step; raises Interrupted when stopped, once that is saved."""
    run = Run(config, log, stop)
    run.begin()
    stop.check()
    while run.step < run.total_steps:
        run.take_step()
        last = run.step == run.total_steps
        # Read once: a signal that comes later in this step is seen after the next, which is then saved.
        stopping = stop.asked
        if last or (config["eval_every"] and run.step % config["eval_every"] == 0):
            run.evaluate()
        if last or stopping or run.step % config["save_every"] == 0:
            run.save()
        if stopping and not last:
            stop.check()


class Run:
    """One attempt of a run. `step` counts the optimizer steps done."""

    def __init__(self, config: Config, log: Log, stop: Stop) -> None:
        self._log = log
        self._target = Target(config)
        shape = draft_shape(self._target, windows(config))
        self._draft_config = draft_config(self._target, shape, config["block_size"])
        self._folder = Path(config["run_dir"]) / "checkpoints"
        self._found, self._notes = checkpoint.find(self._folder, self._draft_config)
        self._data = prepare(config, self._target, stop.check)
        self._plan = Plan(self._data.train, config["batch_tokens"], config["num_buckets"], config["seed"])
        self.total_steps: int = config["total_steps"] or config["epochs"] * self._plan.per_epoch
        scoring = make_scoring(config)
        self._config = {
            **config,
            "total_steps": self.total_steps,
            "gamma": scoring.gamma,
            "mask_token_id": self._target.mask_token_id,
            "target_layer_ids": self._target.layer_ids,
        }
        seeded = torch.Generator().manual_seed(seed_for(config["seed"], "weights", 0))
        self._drafter = Drafter(shape, seeded).to(self._target.device)
        from_final = config["teacher"] == "final_hidden"
        self._objective = Objective(self._target, self._drafter, config["block_size"], scoring, from_final)
        self._optimizer = make_optimizer(self._drafter, config)
        self.step = self._tokens_total = self._num_nonfinite = 0
        self._epoch: tuple[int, list[list[int]]] = (-1, [])
        self._said = -math.inf

    def begin(self) -> None:
        """Takes up the checkpoint if there is one, and says in the log what is run; a fresh run is evaluated first."""
        notes = self._notes + self._data.notes
        if self._found:
            state = self._found.state()
            self._drafter.load_state_dict(self._found.weights())
            self._optimizer.load_state_dict(state["optimizer"])
            self.step, self._tokens_total = state["step"], state["tokens_total"]
            notes += checkpoint.changes(state, self._config, self._data.digest)
        resumed_from = self.step if self._found else None
        self._log.write("start", **start_record(self._config, self._target, self._data.digest, resumed_from))
        for note in notes:
            self._warn(note)
        if not self._found:
            self.evaluate()

    def take_step(self) -> None:
        """One optimizer step and its record; a step that is not finite changes no weight.

        Raises NonFiniteError after max_nonfinite_steps such steps in a row.
        """
        began = time.perf_counter()
        config, index = self._config, self.step
        batch = self._batch(index)
        features, target_fwd_s = self._objective.features(batch)
        noise_std = schedule.noise_std(config, index, self.total_steps)
        noise = self._generator("noise", batch.tokens.device)
        features = noisy(features, config["noise.kind"], noise_std, config["noise.on"], noise)
        anchors = draw_anchors(batch.response, config["num_anchors"], self._generator("anchors"))
        summed, counts = self._objective.loss(batch, features, anchors)
        loss = counts.losses()["loss"]
        (summed / counts.weight).backward()  # type: ignore[no-untyped-call]
        limit = math.inf if config["max_grad_norm"] in (None, "none") else config["max_grad_norm"]
        grad_norm = float(torch.nn.utils.clip_grad_norm_(self._drafter.parameters(), limit))
        lr = schedule.lr(config, index, self.total_steps)
        assert loss is not None
        finite = math.isfinite(loss) and math.isfinite(grad_norm)
        if finite:
            for group in self._optimizer.param_groups:
                group["lr"] = lr
            self._optimizer.step()
        self._optimizer.zero_grad()
        self.step += 1
        made_of = batch_fields(batch, counts)
        self._tokens_total += made_of["tokens"]
        step_time_s = time.perf_counter() - began
        sparse = sparse_fields(counts) if self.step % config["log_arrays_every"] == 0 else {}
        self._log.write(
            "train",
            step=self.step,
            epoch=round(self.step / self._plan.per_epoch, 5),
            loss=loss,
            **score_fields(counts),
            lr=rounded(lr),
            grad_norm=rounded(grad_norm),
            grad_clipped=grad_norm > limit,
            noise_std=rounded(noise_std),
            **made_of,
            tokens_total=self._tokens_total,
            tok_per_sec=rounded(made_of["tokens"] / step_time_s),
            step_time_s=rounded(step_time_s),
            target_fwd_s=rounded(target_fwd_s),
            **sparse,
        )
        self._say(loss)
        self._count_nonfinite(finite)

    def evaluate(self) -> None:
        """Decodes with the drafter as it is: all held-out prompts at both ends of the run, some in between."""
        count = self._config["eval.num_prompts"] if 0 < self.step < self.total_steps else None
        held_out = self._data.held_out[:count]
        if held_out:
            fields = evaluate(self._objective, held_out, self._config["eval.anchor_stride"])
            self._log.write("eval", step=self.step, **fields)
            print(
                f"step {self.step}: {fields['tau_linear_macro']:.2f} tokens a pass on {len(held_out)} held-out prompts "
                f"(prompt lookup {fields['lookup_tau_macro']:.2f}), lossless {fields['lossless']:.0%}, "
                f"{fields['seconds']:.0f} s",
                flush=True,
            )

    def save(self) -> None:
        """Raises OSError when the disk is full."""
        began = time.monotonic()
        state = {
            "step": self.step,
            "tokens_total": self._tokens_total,
            "optimizer": self._optimizer.state_dict(),
            "config": nest(self._config),
            "data_hash": self._data.digest,
        }
        keep = self._config["keep_checkpoints"]
        place = checkpoint.write(self._folder, self.step, self._drafter, self._draft_config, state, keep)
        size = sum(file.stat().st_size for file in place.iterdir())
        path = f"{self._folder.name}/{place.name}"
        self._log.write("checkpoint", step=self.step, path=path, bytes=size, seconds=rounded(time.monotonic() - began))

    def _batch(self, index: int) -> Batch:
        number, place = divmod(index, self._plan.per_epoch)
        if self._epoch[0] != number:
            self._epoch = (number, self._plan.epoch(number))
        return collate([self._data.train[i] for i in self._epoch[1][place]], self._target.device)

    def _generator(self, purpose: str, device: torch.device | None = None) -> torch.Generator:
        return torch.Generator(device or "cpu").manual_seed(seed_for(self._config["seed"], purpose, self.step))

    def _count_nonfinite(self, finite: bool) -> None:
        self._num_nonfinite = 0 if finite else self._num_nonfinite + 1
        if self._num_nonfinite == 1:
            self._warn(f"step {self.step}: loss or gradient is not finite; the step changed no weight")
        if self._num_nonfinite >= self._config["max_nonfinite_steps"]:
            raise NonFiniteError(
                f"loss or gradient was not finite for {self._num_nonfinite} steps in a row, up to step {self.step}; "
                "lower lr or look for bad rows, then resume from the last checkpoint"
            )

    def _warn(self, text: str) -> None:
        self._log.write("warn", step=self.step, reason=text)
        print(f"warning: {text}", flush=True)

    def _say(self, loss: float) -> None:
        now = time.monotonic()
        if now - self._said > _SECONDS_BETWEEN_LINES or self.step == self.total_steps:
            self._said = now
            print(f"step {self.step} of {self.total_steps}: loss {loss:.3f}", flush=True)

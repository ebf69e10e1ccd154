"""The loop.

Order within a step that is due for everything: train record, evaluation, checkpoint, stop. So whatever a checkpoint
follows is in the log, and a resumed run repeats no evaluation. One that a stop cuts short is made by the resume, and so
is one that ends the run: what is due to be saved is saved before it too.
"""

import math
import time
from pathlib import Path
from typing import Any

from trainer import capture, checkpoint, schedule
from trainer.attention import Attention
from trainer.beginning import make_drafter
from trainer.captured import Captured
from trainer.config import Config, nest
from trainer.dataset import prepare
from trainer.engine import Engine, nonfinite_rows
from trainer.errors import Interrupted
from trainer.evaluate import evaluate, sentence
from trainer.faults import Faults
from trainer.feed import Feed
from trainer.log import Log
from trainer.loss import make_scoring
from trainer.optimizer import Optimizer
from trainer.ranks import Ranks
from trainer.records import ByLength, Window, rounded, start_record
from trainer.step import Objective
from trainer.stop import Stop
from trainer.target import Target
from trainer.zlab import draft_config

_SECONDS_BETWEEN_LINES = 10.0


def train(config: Config, log: Log, stop: Stop, ranks: Ranks) -> None:
    """Runs to the last step; raises Interrupted when stopped, once that is saved."""
    run = Run(config, log, stop, ranks)
    run.begin()
    if ranks.any(stop.asked):
        stop.end()
    while run.step < run.total_steps:
        run.take_step()
        # Asked once: a signal that comes later in this step is seen after the next, which is then saved.
        stopping = ranks.any(stop.asked)
        last = run.step == run.total_steps
        due = last or run.is_due(config["eval_every"])
        if due and (last or run.is_due(config["save_every"])):
            run.save_ahead()
        best = due and run.evaluate()
        left = due and ranks.any(run.owes_evaluation)
        if last or stopping or left or best or run.is_due(config["save_every"]):
            run.save()
        if left or (stopping and not last):
            stop.end()


class Run:
    """One attempt of a run. `step` counts the optimizer steps done."""

    def __init__(self, config: Config, log: Log, stop: Stop, ranks: Ranks) -> None:
        self._log, self._stop, self._ranks = log, stop, ranks
        self._target = Target(config, ranks.device(config["device"]))
        self._drafter = make_drafter(config, self._target)
        self._draft_config = draft_config(self._target, self._drafter.shape, config["block_size"])
        self._folder = Path(config["run_dir"]) / "checkpoints"
        self._found, self._notes = checkpoint.find(self._folder, self._draft_config)
        self._data = prepare(config, self._target, stop.check, ranks)
        captured = None
        if config["features.path"]:
            wanted = capture.of(config, self._target, self._data.train)
            captured = Captured(Path(config["features.path"]), self._data.train.lengths, wanted)
        self._feed = Feed(self._data.train, config, ranks, self._target.device, captured)
        self.total_steps = self._feed.total_steps
        scoring = make_scoring(config)
        self._config = {
            **config,
            "total_steps": self.total_steps,
            "micro_batches": self._feed.per_step,
            "gamma": scoring.gamma,
            "mask_token_id": self._target.mask_token_id,
            "target_layer_ids": self._target.layer_ids,
        }
        from_final = config["teacher"] == "final_hidden"
        attention = Attention(config["attention"])
        self._objective = Objective(self._target, self._drafter, config["block_size"], scoring, from_final, attention)
        self._optimizer = Optimizer(self._drafter, config)
        self._engine = Engine(self._objective, self._optimizer, ranks, config, self._feed.edges)
        self._faults = Faults(config["max_nonfinite_steps"])
        self.step = self._tokens_total = 0
        self.owes_evaluation = False
        self._best: tuple[int, float] = (0, -math.inf)
        self._said = -math.inf
        self._window = Window(config["block_size"], self._target.device)
        self._by_length = ByLength()

    def is_due(self, every: int) -> bool:
        """Every so many steps; never if that is 0."""
        return every > 0 and self.step % every == 0

    def begin(self) -> None:
        """Takes up the checkpoint if there is one, and says in the log what is run; a fresh run is evaluated first."""
        notes = self._notes + self._data.notes
        if self._found:
            state = self._found.state()
            self._drafter.load_state_dict(self._found.weights())
            self._optimizer.load(state["optimizer"])
            self.step, self._tokens_total = state["step"], state["tokens_total"]
            self._best = tuple(state["best"])
            self.owes_evaluation = state.get("owes_evaluation", False)
            notes += checkpoint.changes(state, self._config, self._data.digest)
        if (idle := self._ranks.count - self._feed.per_step) > 0:
            notes.append(f"micro_batches: {self._feed.per_step} leaves {idle} processes idle")
        told = self._config, self._target, self._data.digest, self._ranks.count
        self._log.write("start", **start_record(*told, self.step if self._found else None))
        for note in notes:
            self._warn(note)
        if not self._found or self.owes_evaluation:
            self.evaluate()
            if self._found and not self.owes_evaluation:
                self.save()

    def take_step(self) -> None:
        """One optimizer step, and its record if it is due.

        Raises NonFiniteError after max_nonfinite_steps steps in a row that were not finite.
        """
        index = self.step
        lr = schedule.lr(self._config, index, self.total_steps)
        noise_std = schedule.noise_std(self._config, index, self.total_steps)
        step = self._engine.step(self._feed.batches(index), lr, noise_std)
        self.step += 1
        self._tokens_total += step.made_of["tokens"]
        self._window.add(step)
        self._by_length.add(step)
        if self.is_due(self._config["log_every"]) or not step.stepped or self.step == self.total_steps:
            self._record()
        for note in step.notes:
            self._warn(note)
        spilled = [text for texts in self._ranks.gather(step.spilled) for text in texts] if step.num_spilled else []
        if said := self._faults.judge(self.step, step, spilled, self._spoiled_lines):
            self._warn(said)

    def evaluate(self) -> bool:
        """Decodes with the drafter as it is; True if it never was better on the prompts of every evaluation."""
        few = self._config["eval.num_prompts"]
        held_out = self._data.held_out[: few if 0 < self.step < self.total_steps else None]
        best = self.owes_evaluation = False
        if held_out and self._ranks.is_first:
            when = self._config["eval.ddtree"]
            trees = when == "always" or (when == "last" and self.step == self.total_steps)
            stride, room = self._config["eval.anchor_stride"], self._config["data.generate_batch"]
            print(f"step {self.step}: evaluation begins, {len(held_out)} held out", flush=True)
            told = {"trees": trees, "at_a_time": room, "check_stop": self._stop.check}
            try:
                ((tau, fields),) = evaluate([self._objective], held_out, stride, few, **told)
            except Interrupted:
                self.owes_evaluation = True
                return False
            self._log.write("eval", step=self.step, **fields)
            best = tau > self._best[1] and self.step > 0
            self._best = (self.step, tau) if best else self._best
            print(f"step {self.step}: {sentence(fields)}, {fields['seconds']:.0f} s", flush=True)
        return best

    def save_ahead(self) -> None:
        """Before an evaluation, in which a run may be killed or find too little memory: a resume begins with that.

        Whether it is the best is not known yet: it is saved again then, and noted in the log.
        """
        if self._data.held_out and self._ranks.is_first:
            self.owes_evaluation = True
            self._write_checkpoint()

    def save(self) -> None:
        """Raises OSError when the disk is full."""
        if not self._ranks.is_first:
            return
        began = time.monotonic()
        place = self._write_checkpoint()
        size = sum(file.stat().st_size for file in place.iterdir())
        self._log.write(
            "checkpoint",
            step=self.step,
            path=f"{self._folder.name}/{place.name}",
            bytes=size,
            best=self.step == self._best[0],
            seconds=rounded(time.monotonic() - began),
        )

    def _write_checkpoint(self) -> Path:
        self._record()
        state = {
            "step": self.step,
            "tokens_total": self._tokens_total,
            "optimizer": self._optimizer.state(),
            "best": list(self._best),
            "owes_evaluation": self.owes_evaluation,
            "config": nest(self._config),
            "data_hash": self._data.digest,
        }
        saved = checkpoint.Saved(self.step, self._drafter, self._draft_config, state)
        return checkpoint.write(self._folder, saved, self._config["keep_checkpoints"], self._best[0])

    def _record(self) -> None:
        """The train record of the steps since the last one, if there are any."""
        if self._window.is_empty:
            return
        sparse = self.is_due(self._config["log_arrays_every"])
        lr = schedule.lr(self._config, self.step - 1, self.total_steps)
        rates: dict[str, Any] = {name: rounded(rate) for name, rate in self._optimizer.rates(lr).items()}
        self._log.write(
            "train",
            # What a person looks for comes first: of a line of 400 bytes a terminal shows the begin.
            step=self.step,
            **self._window.fields(self._engine.limit, sparse=sparse),
            **rates,
            noise_std=rounded(schedule.noise_std(self._config, self.step - 1, self.total_steps)),
            epoch=round(self._feed.epochs(self.step), 5),
            **(self._by_length.take() if sparse else {}),
            tokens_total=self._tokens_total,
        )
        self._say(self._window.loss())
        self._window = Window(self._config["block_size"], self._target.device)

    def _spoiled_lines(self) -> list[int]:
        """Lines of the data file in the last step whose features are not finite; asks the target once more."""
        index, found = self.step - 1, []
        for lines, batch in self._feed.alone(index):
            found += [lines[row] for row in nonfinite_rows(self._objective.features(batch)[0].taps)]
        return sorted(line for lines in self._ranks.gather(found) for line in lines)

    def _warn(self, text: str) -> None:
        self._log.write("warn", step=self.step, reason=text)
        if self._ranks.is_first:
            print(f"warning: {text}", flush=True)

    def _say(self, loss: float | None) -> None:
        now = time.monotonic()
        due = now - self._said > _SECONDS_BETWEEN_LINES or self.step == self.total_steps
        if due and loss is not None and self._ranks.is_first:
            self._said = now
            print(f"step {self.step} of {self.total_steps}: loss {loss:.3f}", flush=True)

"""The processes that train together: who is who, and the sums they share.

One process is the plain case, in which everything here is nothing. Gradients are added up in one go once a step, over
micro-batches first and processes then, and divided afterwards by what all of them weigh together; so a process without
work is no exception, and two processes do what one does.
"""

import datetime
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainer.errors import ConfigError, PeerLostError, is_out_of_memory

# Others wait while the first one evaluates, or lets the target write its responses.
_PATIENCE = datetime.timedelta(days=3)


class Ranks:
    """`index` of `count` processes; the environment says so, as torchrun and our own launcher set it."""

    def __init__(self) -> None:
        self.index = int(os.environ.get("RANK", "0"))
        self.count = int(os.environ.get("WORLD_SIZE", "1"))
        self._local = int(os.environ.get("LOCAL_RANK", "0"))
        self._device = torch.device("cpu")

    @property
    def is_first(self) -> bool:
        """The one that writes: log, checkpoints, responses."""
        return self.index == 0

    def device(self, wanted: str) -> torch.device:
        """Where this process computes; "auto" is a GPU if there is one."""
        if wanted == "cpu" or (wanted == "auto" and not torch.cuda.is_available()):
            return torch.device("cpu")
        if self._local >= torch.cuda.device_count():
            seen = torch.cuda.device_count()
            raise ConfigError(f"device: process {self.index} computes on GPU {self._local}, and torch sees {seen} GPUs")
        return torch.device("cuda", self._local)

    def join(self, device: torch.device) -> None:
        """Meets the others; returns when all are there."""
        if self.count > 1 and not dist.is_initialized():
            if device.type == "cuda":
                torch.cuda.set_device(device)
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=_PATIENCE)
        self._device = device

    def leave(self) -> None:
        if dist.is_initialized():
            dist.destroy_process_group()

    def wait(self) -> None:
        """Until all stand here."""
        if self.count > 1:
            with _together():
                dist.barrier()

    def share(self, count: int) -> range:
        """Which of `count` things are this process's."""
        return range(self.index, count, self.count)

    def add(self, sums: Tensor) -> Tensor:
        """`sums` of all processes, added."""
        if self.count > 1:
            with _together():
                dist.all_reduce(sums)
        return sums

    def any(self, flag: bool) -> bool:
        """Whether it is so in one of them."""
        return bool(self.add(torch.tensor([float(flag)], device=self._device)).item())

    def add_gradients(self, parameters: Iterable[nn.Parameter], divisor: float) -> None:
        """Gradients of all processes, added and divided; a parameter without one has one of zeros afterwards."""
        held = list(parameters)
        for parameter in held:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [parameter.grad for parameter in held if parameter.grad is not None]
        if self.count > 1:
            flat = self.add(torch.cat([gradient.flatten() for gradient in gradients]))
            parts = torch.split(flat, [gradient.numel() for gradient in gradients])
            for gradient, part in zip(gradients, parts, strict=True):
                gradient.copy_(part.view_as(gradient))
        for gradient in gradients:
            gradient.div_(divisor)

    def gather(self, thing: Any) -> list[Any]:
        """One `thing` of each process, small and picklable, in order."""
        if self.count == 1:
            return [thing]
        things: list[Any] = [None] * self.count
        with _together():
            dist.all_gather_object(things, thing)
        return things


@contextmanager
def _together() -> Iterator[None]:
    """Whoever waits for a process that has ended learns no more than that."""
    try:
        yield
    except RuntimeError as e:
        if is_out_of_memory(e):
            raise
        raise PeerLostError(PeerLostError.sentence) from e

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import transformers

from trainer.target import Target

from .trainer_setup import checked, random_target


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()


@pytest.fixture(autouse=True)
def _keep_process_state() -> Iterator[None]:
    """A run listens to signals and wants determinism; the next test gets its process as it was."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    torch.use_deterministic_algorithms(False)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Target:
    """The bundled target."""
    return Target(checked(tmp_path_factory.mktemp("tiny")))


@pytest.fixture(scope="session")
def random_folder(tiny: Target, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_target(tmp_path_factory.mktemp("random"), tiny.tokenizer)

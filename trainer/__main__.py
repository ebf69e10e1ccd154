"""python -m trainer config.json: refuses a bad config and a bare interpreter first, and only then imports torch."""

import contextlib
import gc
import importlib.util
import sys
from pathlib import Path

from trainer import config, launcher
from trainer.errors import ConfigError
from trainer.log import Log
from trainer.waiting import choose_waiting

_PACKAGES = ("torch", "transformers", "safetensors")


def main(arguments: list[str]) -> int:
    """Runs the config named by the one argument; returns the exit code."""
    if len(arguments) != 1:
        return _refuse("usage: python -m trainer config.json", 2)
    try:
        checked = config.load(Path(arguments[0]))
    except ConfigError as e:
        return _refuse(str(e), e.exit_code)
    if missing := [name for name in _PACKAGES if importlib.util.find_spec(name) is None]:
        names = " ".join(missing)
        return _lacking(checked, f"{sys.executable} lacks {names}: run {sys.executable} -m pip install {names}")
    if not launcher.is_launched() and (count := launcher.num_processes(checked)) > 1:
        return launcher.launch(arguments, count)
    choose_waiting()
    # What is imported stays: to search it for garbage, now and whenever more is imported, is a quarter of 5 s.
    gc.disable()
    try:
        from trainer.run import run
    except (ImportError, OSError) as e:
        # A package that is there may be too old, or lack another, or a library of the system.
        return _lacking(
            checked, f"{sys.executable} cannot import what training needs ({e}); mend its {', '.join(_PACKAGES)}"
        )
    gc.freeze()
    gc.enable()
    return run(checked)


def _lacking(checked: config.Config, sentence: str) -> int:
    with contextlib.suppress(OSError), Log(Path(checked["run_dir"]) / "train_log.jsonl") as log:
        log.write("end", reason="environment", exit_code=1)
    return _refuse(sentence, 1)


def _refuse(sentence: str, exit_code: int) -> int:
    print(f"trainer: {sentence}", file=sys.stderr)
    return exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

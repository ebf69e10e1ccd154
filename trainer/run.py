"""The edge of a run: whatever happens inside becomes one `end` record, one line for a person, and an exit code.

completed    0    all steps done
saved       75    stopped by a signal, to be resumed
nan, disk-full, oom, error    1 (a config that does not fit its target or data: 2)
"""

import contextlib
import errno
import os
import sys
import traceback
from pathlib import Path

import torch

from trainer.capture import capture
from trainer.comparison import compare
from trainer.config import Config
from trainer.engine import be_exact
from trainer.errors import RunError, is_out_of_memory
from trainer.heap import keep_memory
from trainer.log import Log
from trainer.preparation import prepare_data
from trainer.ranks import Ranks
from trainer.stop import Stop
from trainer.train import train

_KINDS = {"train": train, "prepare": prepare_data, "capture": capture, "evaluate": compare}
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def run(config: Config) -> int:
    """Runs `config` to its end or a stop; returns the exit code. Prints one line on stderr unless all went well."""
    stop, ranks = Stop(), Ranks()
    stop.listen()
    torch.set_num_threads(config["threads"] or max(1, _num_cores() // ranks.count))
    be_exact(config["device"])
    keep_memory()
    folder = Path(config["run_dir"])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with Log(folder / "train_log.jsonl", ranks.index) as log:
            try:
                ranks.join(ranks.device(config["device"]))
                _KINDS[config["kind"]](config, log, stop, ranks)
            except Exception as e:
                reason, exit_code, _ = _ending(e, folder)
                with contextlib.suppress(OSError):
                    # What all meet is told once; what one meets alone, by that one.
                    log.write("end", reason=reason, exit_code=exit_code, alone=not isinstance(e, RunError))
                raise
            log.write("end", reason="completed", exit_code=0)
    except Exception as e:  # noqa: BLE001  (the one place where a run ends)
        _, exit_code, sentence = _ending(e, folder)
        if ranks.is_first or not isinstance(e, RunError):
            print(f"trainer: {sentence}", file=sys.stderr, flush=True)
        return exit_code
    finally:
        ranks.leave()
    return 0


def _num_cores() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _ending(error: Exception, folder: Path) -> tuple[str, int, str]:
    """Reason, exit code, and one sentence."""
    text = " ".join(str(error).split())
    if isinstance(error, RunError):
        return error.reason, error.exit_code, text
    if isinstance(error, OSError) and error.errno in _DISK_FULL:
        return "disk-full", 1, f"no room to write in {folder} ({text}); free some, then resume"
    if is_out_of_memory(error):
        return "oom", 1, f"out of memory ({text}); lower batch_tokens, num_anchors or data.generate_batch, then resume"
    if isinstance(error, OSError):
        return "error", 1, text
    with contextlib.suppress(OSError):
        (folder / "traceback.txt").write_text("".join(traceback.format_exception(error)))
    return "error", 1, f"{type(error).__name__}: {text} (the traceback is in {folder / 'traceback.txt'})"

"""Every error a person can meet in a run: the exit code, and the reason of the log's `end` record.

    RunError                1   error
    ├── ConfigError         2   error       the config, or what it points to, is off
    ├── NonFiniteError      1   nan         the loss or the gradient stays NaN or infinite
    ├── MemoryShortError    1   oom         no batch fits into memory
    ├── PeerLostError       3   error       another process of the run ended, and tells why itself
    └── Interrupted        75   saved       SIGTERM or SIGINT

The text of an error is one sentence: what, where, and what to do next. Nothing here prints.
"""

import errno


class RunError(Exception):
    exit_code = 1
    reason = "error"


class ConfigError(RunError):
    exit_code = 2


class NonFiniteError(RunError):
    reason = "nan"


class MemoryShortError(RunError):
    reason = "oom"


class PeerLostError(RunError):
    exit_code = 3
    sentence = "another process of this run ended; look at what it said, then resume"


class Interrupted(RunError):
    exit_code = 75
    reason = "saved"
    sentence = "stopped by a signal; the same command goes on from here"


# What a CPU's allocator says, CUDA's runtime, and cuBLAS, cuDNN and NCCL where theirs fail inside of it.
_OUT_OF_MEMORY = (
    "can't allocate memory",
    "out of memory",
    "cublas_status_alloc_failed",
    "cudnn_status_alloc_failed",
    "failed to cuda malloc",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether `error`, torch's or Python's, says that memory ran out."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(words in text for words in _OUT_OF_MEMORY)

"""What a person gives a run's environment on the command line: a file of NAME=value lines, and which GPUs it may see.

Values travel to the host on stdin and lie there in a file that only we may read. None of them is ever shown.
"""

import re
from pathlib import Path

from dflash_tui.errors import UsageError
from dflash_tui.text import visible

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LINE = re.compile(r"(?:export\s+)?([^\s=]+)\s*=(.*)")
_MAX_BYTES = 1 << 20


def run_env(env_file: Path | None, gpus: str | None) -> dict[str, str]:
    """UsageError if one of the two cannot be read; its words never quote a value."""
    env = read_env_file(env_file) if env_file else {}
    if gpus is not None:
        if not re.fullmatch(r"\d{1,3}(,\d{1,3})*", gpus) or len(set(gpus.split(","))) < gpus.count(",") + 1:
            raise UsageError(f"--gpus {visible(gpus)}: write the numbers of GPUs, each once: 0 or 0,1")
        env["CUDA_VISIBLE_DEVICES"] = gpus
    return env


def read_env_file(file: Path) -> dict[str, str]:
    """`NAME=value` a line, as in an .env file: `export`, comments, and quotes around a whole value are known."""
    try:
        text = file.read_bytes()[: _MAX_BYTES + 1].decode("utf-8")
    except OSError as e:
        raise UsageError(f"{visible(str(file))}: cannot be read: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise UsageError(f"{visible(str(file))}: is not UTF-8 text") from e
    if len(text) > _MAX_BYTES:
        raise UsageError(f"{visible(str(file))}: is larger than {_MAX_BYTES >> 20} MiB, which no environment is")
    env = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if not match or not _NAME.fullmatch(match[1]) or "\0" in match[2]:
            raise UsageError(f"{visible(str(file))}:{number}: is no line of the form NAME=value")
        env[match[1]] = _unquoted(match[2].strip())
    return env


def _unquoted(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if is_quoted else value

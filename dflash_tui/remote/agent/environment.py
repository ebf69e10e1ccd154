"""What a program that we start finds in its environment: what config and spec say, and little of ours.

Never what a login shell would set: no start-up file is read anywhere on the way.
"""

from __future__ import annotations

import os
from typing import Dict, Optional

# What is passed on from where the agent was started; all else comes from the config and the spec.
_PASSED = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
_PASSED_PREFIXES = ("CUDA_", "NVIDIA_", "OMP_")


def environment(python: Optional[str], given: Dict[str, str], ours: Dict[str, str]) -> Dict[str, str]:
    """`given` beats what is passed on, and `ours` beats both.

    The folder of the interpreter comes first on PATH, as in a virtual environment that was activated: `torchrun` and
    `env python3` are those that belong to it.
    """
    found = {k: v for k, v in os.environ.items() if k in _PASSED or k.startswith(_PASSED_PREFIXES)}
    # Inside a container, `pct exec` gives no HOME.
    found.setdefault("HOME", os.path.expanduser("~"))
    if python and os.path.isabs(python):
        found["PATH"] = os.pathsep.join([os.path.dirname(python), found.get("PATH", os.defpath)])
    return {**found, "PYTHONUNBUFFERED": "1", **given, **ours}

"""What a launch would meet on a machine and run there, as lines for a person."""

import shlex
from typing import TYPE_CHECKING

from dflash_tui.text import data_size, numbered, visible

if TYPE_CHECKING:
    from dflash_tui.remote.plan import LaunchPlan


def plan_lines(plan: "LaunchPlan") -> list[str]:
    """What stands for and against a launch there, and what it will run."""
    view, packages = plan.view, plan.python.packages
    python = f"Python {plan.python.version}" + (f", torch {packages['torch']}" if "torch" in packages else "")
    push = f"push {data_size(plan.push_bytes)}" if plan.push_bytes else "its code is there"
    parts = [f"{view.latency_ms:.0f} ms", python, f"{view.disk_free / 2**30:,.0f} GiB free", push]
    parts += [f"GPU {gpu.index} {gpu}" for gpu in view.gpus or ()] or ["no GPU"]
    if view.living:
        parts.append(numbered(len(view.living), "run") + " there now")
    lines = ["✓ " + " · ".join(parts), "runs: " + shlex.join(plan.argv)]
    lines += [f"with: {', '.join(plan.env)}"] if plan.env else []
    return [visible(line) for line in lines]

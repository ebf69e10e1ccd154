"""Memory that was given back comes again without the kernel."""

import platform
import subprocess
import sys

import pytest

from .trainer_setup import ROOT

COUNT = """
import resource, sys
from trainer.heap import keep_memory
if sys.argv[1] == "kept":
    keep_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        [b"x" * (8 << 20) for _ in range(6)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library: keep_memory does nothing")
def test_what_was_given_back_is_not_asked_for_again():
    command = [sys.executable, "-c", COUNT]
    asked, kept = (
        int(subprocess.run([*command, word], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout)
        for word in ("asked", "kept")
    )
    # 8 MiB are 2048 pages of 4 KiB, or four huge ones.
    assert asked >= 10 * 6 * 4 and kept < asked / 10

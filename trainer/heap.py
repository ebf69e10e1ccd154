"""What glibc does with memory that is given back: kept, since the next step takes as much again.

By default it goes back to the kernel, and coming again page by page costs 5 to 9 % of a step on a CPU.
"""

import ctypes

# Numbers of malloc.h; the second may not be larger.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_TRIM_BYTES, _MMAP_BYTES = 2**31 - 1, 32 << 20


def keep_memory() -> None:
    """For the rest of this process. Nothing where the C library is another one."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)

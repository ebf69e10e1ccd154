"""What the agent refuses, and how the operating system's refusals read."""

import errno

# What it takes to read a run's own files when somebody else has written into them: JSON, and yet another shape.
DAMAGE = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)


class Refused(Exception):
    """A request that cannot be done; its text is one sentence for a person."""


def sentence(error: OSError) -> str:
    """`error` as one sentence; a full disk, the one that people can do something about, says so plainly."""
    where = " (%s)" % error.filename if error.filename else ""
    if is_full(error):
        return "the disk is full%s: free some space, then try again" % where
    if error.errno == errno.EROFS:
        return "the disk is mounted read-only%s: mount it writable, or choose another workdir" % where
    return "%s%s" % (error.strerror or error, where)


def is_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT)

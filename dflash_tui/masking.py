"""What of a command's words may be shown, logged and kept: all but its secrets.

By name and by look, so it is a net, not a promise: what must stay secret goes by --env-file.
"""

import re
from collections.abc import Sequence

_MASK = "***"
_NAMED = re.compile(r"(?i)(?<![a-z])(?:(?:api|access)[_-]?key|key|token|secret|passw(?:or)?d|credentials?)(?![a-z])")
_LOOKS = re.compile(
    r"\b(?:hf_|sk-|ghp_|gho_|github_pat_|glpat-|xox[abpr]-|AKIA)[A-Za-z0-9_-]{8,}|(?<=://)[^/@\s]+(?=@)"
)


def masked(words: Sequence[str]) -> list[str]:
    """`words` with *** for the value of what is called a key, a token or a password, and for what looks like one."""
    shown: list[str] = []
    is_next = False
    for word in words:
        name, equals, value = word.partition("=")
        if is_next and not word.startswith("-"):
            shown.append(_MASK)
        elif equals and value and _NAMED.search(name):
            shown.append(f"{name}={_MASK}")
        else:
            shown.append(_LOOKS.sub(_MASK, word))
        is_next = word.startswith("-") and not equals and _NAMED.search(word) is not None
    return shown

"""How values read: control characters made visible, numbers with their significant digits, ages, nearest names.

Nothing here knows colours, widths or where the text goes.
"""

import math
import unicodedata
from collections.abc import Iterable

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def visible(text: str, *, keep: str = "") -> str:
    """`text` with every control, format and private character escaped, save those in `keep`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c if c in keep or unicodedata.category(c) not in _HIDDEN else c.encode("unicode_escape").decode() for c in text
    )


def number(value: float | int | None, digits: int = 4) -> str:
    """A number with `digits` significant digits: 22,698, 0.0668, 8e-06, 26,146; never 0.0000 for what is not 0."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    size = abs(value)
    if size >= 10 ** (digits - 1):
        return f"{value:,.1f}" if size < 10**digits else f"{value:,.0f}"
    if size < 1e-4:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        if "." in mantissa:
            mantissa = mantissa.rstrip("0").rstrip(".")
        return f"{mantissa}e{exponent}"
    decimals = digits - 1 - math.floor(math.log10(size))
    return f"{value:.{max(0, decimals)}f}"


def numbered(num: int, noun: str) -> str:
    """1 row, 2,000 rows."""
    return f"{num:,} {noun}{'' if num == 1 else 's'}"


def duration(seconds: float | None) -> str:
    """3 s, 4m 05s, 2h 11m, 3d 04h; "-" for none."""
    if seconds is None or not math.isfinite(seconds):
        return "-"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d {whole % 86400 // 3600:02d}h"


def nearest(word: str, options: Iterable[str]) -> str | None:
    """The option a person most likely meant, if one is near enough."""
    import difflib

    found = difflib.get_close_matches(word, list(options), n=1, cutoff=0.5)
    return found[0] if found else None


def did_you_mean(word: str, options: Iterable[str]) -> str:
    """A clause to put behind an error about `word`: the nearest option, or all of them when there are few."""
    names = sorted(options)
    near = nearest(word, names)
    if near:
        return f"did you mean {near!r}?"
    return f"known: {', '.join(names)}" if len(names) <= 24 else "no known name is near"

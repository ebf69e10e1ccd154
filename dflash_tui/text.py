"""How values read: control characters made visible, numbers with their significant digits, ages, nearest names.

Nothing here knows colours or where the text goes.
"""

import math
import unicodedata
from collections.abc import Iterable, Iterator
from decimal import Decimal

_SUFFIXES = {3: "k", 6: "M", 9: "B", 12: "T"}
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def visible(text: str, *, keep: str = "") -> str:
    """`text` with every control, format and private character escaped, save those in `keep`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c if c in keep or unicodedata.category(c) not in _HIDDEN else c.encode("unicode_escape").decode() for c in text
    )


def number(value: float | int | None, digits: int = 4) -> str:
    """A number with `digits` significant digits: 22,698, 0.0668, 8e-06, 7.5e+299; never 0.0000 for what is not 0."""
    if value is None:
        return "-"
    if isinstance(value, int):
        # Python writes no integer of more than 4300 digits; nobody reads one of more than 38.
        return f"{value:,}" if value.bit_length() <= 128 else _scientific(Decimal(value), digits)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    size = abs(value)
    if size >= 1e15 or size < 1e-4:
        return _scientific(value, digits)
    if size >= 10 ** (digits - 1):
        return f"{value:,.1f}" if size < 10**digits else f"{value:,.0f}"
    decimals = digits - 1 - math.floor(math.log10(size))
    return f"{value:.{max(0, decimals)}f}"


def number_within(value: float | int | None, width: int, digits: int = 4) -> str:
    """`number` in `width` characters: with fewer digits, by the thousand or million, or with an exponent: 12.35M.

    Whole or not at all: what was cut would be another number. An ellipsis, where no form of it fits.
    """
    return next((text for text in _shorter(value, digits) if len(text) <= width), "…")


def _shorter(value: float | int | None, digits: int) -> Iterator[str]:
    """Ways to write a number, the most exact first."""
    fewer = range(digits, 0, -1)
    yield from (number(value, few) for few in fewer)
    if value is None:
        return
    if isinstance(value, float) and math.isinf(value):
        yield "Inf" if value > 0 else "-Inf"
    elif 1000 <= abs(value) < 1e15:
        power = 3 * ((len(f"{abs(value):.0f}") - 1) // 3)
        scaled = [f"{value / 10**power:.{decimals}f}" for decimals in (2, 1)]
        yield from (text.rstrip("0").rstrip(".") + _SUFFIXES[power] for text in scaled)
        yield f"{value / 10**power:.0f}{_SUFFIXES[power]}"
    elif isinstance(value, int):
        yield from (_scientific(Decimal(value), few) for few in fewer)


def _scientific(value: float | Decimal, digits: int) -> str:
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{exponent}"


def data_size(num_bytes: int) -> str:
    """812 B, 34.2 kB, 212 kB, 1.9 MB, 1,420.0 MB, 14 GB: in thousands, as disks are sold."""
    if num_bytes < 1000:
        return f"{num_bytes} B"
    if num_bytes < 999_500:
        return f"{num_bytes / 1e3:.{1 if num_bytes < 99_950 else 0}f} kB"
    return f"{num_bytes / 1e6:,.1f} MB" if num_bytes < 10e9 else f"{num_bytes / 1e9:,.0f} GB"


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

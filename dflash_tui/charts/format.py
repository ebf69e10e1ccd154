"""How numbers read: alone, as a column, and as the labels of one axis.

Owns digits, suffixes and exponents. No small number is rounded to zero, no two labels of an axis read alike.
"""

import math
from collections.abc import Sequence
from decimal import Decimal

SUFFIXES = {0: "", 3: "k", 6: "M", 9: "B", 12: "T"}

ABSENT = "-"
DIGITS = 4


def number(value: float | None) -> str:
    """One number with four significant digits: 22,698, 0.0668, 8e-06; "-" for none."""
    if value is None:
        return ABSENT
    if isinstance(value, int):
        # Python writes no integer of more than 4300 digits; nobody reads one of more than 38.
        return f"{value:,}" if value.bit_length() <= 128 else f"{Decimal(value):.{DIGITS - 1}e}"
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    size = abs(value)
    if value == int(value) and size < 1e15:
        return f"{int(value):,}"
    if size >= 1e15 or size < 1e-4:
        mantissa, exponent = f"{value:.{DIGITS - 1}e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{exponent}"
    return f"{value:,.{_decimals(size)}f}"


def short(value: float) -> str:
    """`number` without the zeros at its end: 0.001 rather than 0.001000, where nothing stands below it."""
    text = number(value)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def brief(value: float) -> str:
    """A large number with four digits and a suffix, 52.39B; smaller ones as `short` has them."""
    power = min(12, 3 * ((len(f"{abs(value):.0f}") - 1) // 3))
    return f"{value / 10**power:.4g}{SUFFIXES[power]}" if power else short(value)


def column(values: Sequence[float | None]) -> list[str]:
    """Numbers that stand below one another: whole ones whole, and the same decimals for all others, if that leaves each
    at least three digits."""
    finite = [v for v in values if v is not None and math.isfinite(v)]
    sizes = [abs(v) for v in finite if v]
    if all(v == int(v) for v in finite):
        return [number(v) for v in values]
    decimals = _decimals(max(sizes))
    if not 1e-3 <= max(sizes) < 1e15 or min(sizes) < 100 * 10.0**-decimals:
        return [number(v) for v in values]
    while decimals and all(f"{v:.{decimals}f}".endswith("0") for v in finite if v % 1):
        decimals -= 1
    # A step of 1 is "1", and zero "0": as "1.000" it would look like a thousand, or like one of the rounded numbers.
    return [number(v) if v is None or v % 1 == 0 or not math.isfinite(v) else f"{v:,.{decimals}f}" for v in values]


def axis_labels(numerators: Sequence[int], exponent: int) -> list[str]:
    """The labels of numerators x 10^exponent in one notation, exact, so that different numbers read differently.

    26,140 and 26,120 stay whole; 10,000 and 20,000 become 10k and 20k; 0.0002 becomes 2e-04.
    """
    if not any(numerators):
        return ["0"] * len(numerators)
    while all(n % 10 == 0 for n in numerators):
        numerators = [n // 10 for n in numerators]
        exponent += 1
    magnitude = len(str(max(map(abs, numerators)))) - 1 + exponent
    if magnitude < -3 or magnitude >= 15:
        return [scientific(n, exponent) for n in numerators]
    if magnitude >= 4:
        unit = magnitude // 3 * 3
        # More than one decimal ("26.14k") reads worse than the whole number, until that has eight digits.
        if unit - exponent <= 1 or magnitude >= 7:
            return [_fixed(n, exponent - unit, SUFFIXES[unit]) for n in numerators]
    return [_fixed(n, exponent) for n in numerators]


def scientific(numerator: int, exponent: int) -> str:
    """numerator x 10^exponent as 8e-06 or 1.16e-09, with all its digits."""
    if numerator == 0:
        return "0"
    digits = str(abs(numerator))
    power = len(digits) - 1 + exponent
    tail = digits[1:].rstrip("0")
    return f"{'-' if numerator < 0 else ''}{digits[0]}{'.' + tail if tail else ''}e{power:+03d}"


def _fixed(numerator: int, exponent: int, suffix: str = "") -> str:
    if numerator == 0:
        return "0"
    sign = "-" if numerator < 0 else ""
    if exponent >= 0:
        return f"{sign}{abs(numerator) * 10**exponent:,}{suffix}"
    whole, part = divmod(abs(numerator), 10**-exponent)
    return f"{sign}{whole:,}.{part:0{-exponent}d}{suffix}"


def _decimals(size: float) -> int:
    """How many decimals give a number of this size `DIGITS` significant digits."""
    if size >= 10 ** (DIGITS - 1):
        return 1 if size < 10**DIGITS else 0
    return DIGITS - 1 - math.floor(math.log10(size))

"""How many terminal cells a text takes, and cutting it to a number of cells.

Owns the width of characters, and keeps out those that could move a cursor or whose width terminals disagree on.
Escaping them so that they can be read is the caller's work; here they only become the replacement character.
"""

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
ELLIPSIS = "…"

_NEVER = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_COMBINING = {"Mn", "Me", "Mc"}
# Terminals (and rich against unicodedata) count these as 0, 1 or 2 cells: an exact grid cannot hold them.
_DISPUTED = (
    (0x1160, 0x11FF),  # Hangul vowels and finals on their own
    (0x2630, 0x2637),  # trigrams
    (0x268A, 0x268F),  # monograms, digrams
    (0x3164, 0x3164),
    (0x4DC0, 0x4DFF),  # hexagrams
    (0xD7B0, 0xD7FB),
    (0xFE00, 0xFE0F),  # variation selectors: they widen the character before them
    (0xFFA0, 0xFFA0),
    (0x1D300, 0x1D37F),
    (0x1F1E6, 0x1F1FF),  # regional indicators: two of them are one flag
    (0x1F3FB, 0x1F3FF),  # skin tones: part of the emoji before them, or not
    (0xE0100, 0xE01EF),
)


def cells(text: str) -> list[str]:
    """One entry a cell: a character with its combining marks, or "" for the right half of a wide one."""
    if text.isascii() and text.isprintable():
        return list(text)
    found: list[str] = []
    for char in unicodedata.normalize("NFC", text):
        width = _char_width(char)
        if width == 0 and found:
            base = -1 if found[-1] else -2
            found[base] += char
        elif width == 2:
            found += [char, ""]
        else:
            found.append(char if width == 1 else REPLACEMENT)
    return found


def text_width(text: str) -> int:
    """The number of cells that `text` takes."""
    return len(text) if text.isascii() else len(cells(text))


def fit(text: str, width: int) -> str:
    """`text` in at most `width` cells; what was cut shows as an ellipsis."""
    if len(text) <= width and text.isascii() and text.isprintable():
        return text
    whole = cells(text)
    if len(whole) <= width:
        return "".join(whole)
    if width <= 0:
        return ""
    kept = whole[: width - 1]
    if kept and whole[width - 1] == "":
        kept[-1] = " "  # the left half of a wide character whose right half is gone
    return "".join(kept) + ELLIPSIS


def fit_middle(text: str, width: int) -> str:
    """`fit`, cut in the middle: of names that begin alike the ends tell them apart."""
    whole = cells(text)
    if len(whole) <= width or width < 3:
        return fit(text, width)
    tail = whole[len(whole) - (width - 1) // 2 :]
    if tail[0] == "":
        tail[0] = " "  # the right half of a wide character
    return fit(text, width - len(tail)) + "".join(tail)


def shares(widths: Sequence[int], room: int) -> list[int]:
    """What each of some texts side by side gets of `room` cells, at least one: the longest give way first."""
    most = max(widths, default=0)
    while most > 1 and sum(min(width, most) for width in widths) > room:
        most -= 1
    got = [min(width, most) for width in widths]
    left = room - sum(got)
    for i, width in enumerate(widths):
        if left > 0 and got[i] < width:
            got[i] += 1
            left -= 1
    return got


@lru_cache(maxsize=4096)
def _char_width(char: str) -> int:
    """0 for a combining mark, 1 or 2 for what is drawn, -1 for what never is."""
    category = unicodedata.category(char)
    if category in _NEVER or any(low <= ord(char) <= high for low, high in _DISPUTED):
        return -1
    if category in _COMBINING:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1

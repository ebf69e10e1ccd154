"""Words looked for in a log's bytes, whole blocks of lines at a time: a search, a filter, signs of trouble.

Plain words and no patterns: a regular expression over a long log would hold up the whole process while it runs.
"""

from collections.abc import Iterator
from typing import NamedTuple


class Words(NamedTuple):
    """A line matches if it has one of `needles`; `is_folded` ones are small letters that stand for capitals too."""

    needles: tuple[bytes, ...]
    is_folded: bool = False

    def lines(self, block: bytes) -> Iterator[int]:
        """The places of the lines of `block` that match, in order, the first being 0.

        Of a progress bar, which writes over itself, only the last state that says anything can match.
        """
        text = block.lower() if self.is_folded else block
        found = {needle: text.find(needle) for needle in self.needles}
        at = line = 0
        while (hit := min((place for place in found.values() if place >= 0), default=-1)) >= 0:
            line += text.count(b"\n", at, hit)
            end = text.find(b"\n", hit)
            if over := text[hit : end if end >= 0 else None].rstrip().rfind(b"\r") + 1:
                at = hit + over
            else:
                yield line
                at, line = end + 1, line + 1
                if not at:
                    return
            for needle, place in found.items():
                if 0 <= place < at:
                    found[needle] = text.find(needle, at)

    def places(self, text: str) -> list[range]:
        """Where `text` has them: the characters of each."""
        text = text.lower() if self.is_folded and text.isascii() else text
        found = []
        for needle in self.needles:
            word = needle.decode("utf-8", "replace")
            at = text.find(word)
            while at >= 0:
                found.append(range(at, at + len(word)))
                at = text.find(word, at + len(word))
        return sorted(found, key=lambda place: place.start)


def typed(text: str) -> Words:
    """What a person typed: capitals are looked for as they are, small letters stand for both."""
    return Words((text.encode("utf-8", "replace"),), is_folded=text == text.lower())


# What a trainer prints when something is wrong.
TROUBLE = Words(
    (b"Error", b"ERROR", b"error:", b"Exception", b"Traceback", b"CRITICAL", b"FATAL", b"Killed", b"out of memory")
)

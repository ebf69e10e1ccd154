"""A canvas as SVG: braille dots, blocks and rules become shapes, which look the same in every font; words are text.

Roles become classes (`c-data`): whoever embeds it gives them colours.
"""

from html import escape

from dflash_tui.charts.canvas import EIGHTHS_RIGHT, EIGHTHS_UP, RIGHT_HALF, SHADE, Canvas, Role
from dflash_tui.charts.cells import text_width

_W, _H = 8, 16
_BRAILLE = range(0x2800, 0x2900)
# Where the eight bits of a braille character lie, as column and row.
_DOTS = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))
# Which arms a rule has: left, right, up, down.
_RULES = {"─": "lr", "│": "ud", "┤": "lud", "┬": "lrd", "└": "ur", "┴": "lru"}
_ARMS = {"l": (0, 7.5, 4.5, 1), "r": (3.5, 7.5, 4.5, 1), "u": (3.5, 0, 1, 8), "d": (3.5, 8, 1, 8)}
_Box = tuple[float, float, float, float]
_DASHES: dict[str, list[_Box]] = {
    "┈": [(x, 7.5, 1, 1) for x in (0.5, 2.5, 4.5, 6.5)],
    "┊": [(3.5, y, 1, 2) for y in (1, 5, 9, 13)],
}


def canvas_svg(canvas: Canvas, label: str) -> str:
    """One `<svg>` element; `label` is what it shows, in a word."""
    shapes: dict[Role, list[str]] = {}
    words: list[str] = []
    for y, row in enumerate(canvas.rows()):
        x = 0
        for span in row:
            width = text_width(span.text)
            if span.ground is Role.BAND:
                shapes.setdefault(Role.BAND, []).append(_path(x, y, (0, 0, _W * width, _H)))
            words += _draw_span(span.text, span.role, x, y, shapes)
            x += width
    paths = [
        f'<path class="c-{role}" d="{"".join(parts)}"/>'
        for role, parts in sorted(shapes.items(), key=lambda item: _depth(item[0]))
    ]
    size = f"0 0 {_W * canvas.width} {_H * canvas.height}"
    return f'<svg viewBox="{size}" role="img" aria-label="{escape(label)}">{"".join(paths + words)}</svg>'


def _depth(role: Role) -> int:
    """What lies below: a band, then grid and axes, then the lines, the first series on top."""
    below = (Role.BAND, Role.GRID, Role.AXIS, Role.MARK, Role.THIRD, Role.SECOND)
    return below.index(role) if role in below else len(below)


def _draw_span(text: str, role: Role, x: int, y: int, shapes: dict[Role, list[str]]) -> list[str]:
    """Put the shapes of a span to the others of its role; its words are returned."""
    words: list[str] = []
    run, start = "", x
    for char in text:
        boxes = _boxes(char)
        if boxes is None:
            start, run = (x, char) if not run else (start, run + char)
        else:
            words, run = words + _text(run, role, start, y), ""
            shapes.setdefault(role, []).extend(_path(x, y, box) for box in boxes)
        x += text_width(char)
    return words + _text(run, role, start, y)


def _text(run: str, role: Role, x: int, y: int) -> list[str]:
    if not run.strip():
        return []
    x += len(run) - len(run.lstrip())
    run = run.strip()
    return [
        f'<text class="c-{role}" x="{_W * x}" y="{_H * y + 12}" textLength="{_W * text_width(run)}"'
        f' lengthAdjust="spacingAndGlyphs">{escape(run)}</text>'
    ]


def _boxes(char: str) -> list[_Box] | None:
    """The boxes that a character of the charts is made of, within its cell; None for one that is read."""
    code = ord(char)
    if code in _BRAILLE:
        return [(1 + 4 * x, 1 + 4 * y, 2.5, 2.5) for bit, (x, y) in enumerate(_DOTS) if code >> bit & 1]
    if char == SHADE:
        return [(0, 0, _W, _H)]
    if char in EIGHTHS_UP[1:]:
        height = _H * EIGHTHS_UP.index(char) / 8
        return [(0, _H - height, _W, height)]
    if char in EIGHTHS_RIGHT[1:]:
        return [(0, 0, EIGHTHS_RIGHT.index(char), _H)]
    if char == RIGHT_HALF:
        return [(_W / 2, 0, _W / 2, _H)]
    if char in _RULES:
        return [_ARMS[arm] for arm in _RULES[char]]
    return _DASHES.get(char)


def _path(x: int, y: int, box: _Box) -> str:
    left, top, width, height = box
    return f"M{_W * x + left:g} {_H * y + top:g}h{width:g}v{height:g}h{-width:g}z"

"""Several runs in one plot: who is who without a colour, each as far as it goes, and what others reached."""

import math

import pytest

from dflash_tui.charts import Canvas, Level, Role, Trace, draw_overlay

from .chart_golden import Golden, framed

SIZES = ((60, 14), (38, 10), (20, 6))


def falling(sign: str, name: str, num: int, step: int, low: float) -> Trace:
    xs = [float(i * step) for i in range(num)]
    name, _, figure = name.partition(" ")
    values = [low + 1.9 * math.exp(-x / 5000) + 0.03 * math.sin(x * x) for x in xs]
    return Trace(sign, name, xs, values, figure=figure)


HARD = falling("a", "v5-hard 0.913", 80, 290, 0.9)
SHORT = falling("b", "v5-g10 1.21", 30, 100, 1.1)
PICTURES: dict[str, tuple[list[Trace], str, list[Level]]] = {
    "two_runs": ([HARD, SHORT], "linear", []),
    "four_runs": (
        [HARD, SHORT, falling("c", "v4-kl07 1.6", 40, 500, 1.5), falling("d", "v3 2.1", 60, 290, 2.0)],
        "linear",
        [],
    ),
    "reference": (
        [
            Trace("a", "v5", [0, 10_000, 20_000], [1.0, 3.0, 3.63], figure="3.63"),
            Trace("b", "v4", [0, 20_000], [1.0, 2.7], figure="2.7"),
        ],
        "linear",
        [Level(12.38, "12.4, now 29 % of story")],
    ),
    "log_with_zero_and_nan": (
        [Trace("a", "grad", list(range(40)), [0.0, math.nan, *[10 ** (i % 7 - 3) for i in range(38)]])],
        "log",
        [Level(0.0, "not on this axis")],
    ),
    "by_slot": (
        [
            Trace("a", "v5", list(range(1, 16)), [0.46 * 0.85**k for k in range(15)]),
            Trace("R", "z-lab", [1, 15], [0.92, 0.375], is_other=True),
        ],
        "linear",
        [],
    ),
    "one_point_each": ([Trace("a", "v5", [5], [1.0]), Trace("b", "v4", [9], [2.0])], "linear", []),
    "one_has_nothing": ([HARD, Trace("b", "silent", [], [])], "linear", []),
    "nothing": ([Trace("a", "v5", [], []), Trace("b", "v4", [1], [None])], "linear", [Level(1.0, "story")]),
}  # fmt: skip


@pytest.mark.parametrize("name", PICTURES)
def test_looks(golden: Golden, name: str) -> None:
    traces, scale, levels = PICTURES[name]
    text = ""
    for width, height in SIZES:
        canvas = draw_overlay(traces, width=width, height=height, scale=scale, levels=levels)
        text += framed(canvas)
    golden(f"overlay/{name}", f"{text}{canvas.tally}\n")


def letters(canvas: Canvas) -> dict[str, int]:
    plot = canvas.text().split("\n")[1:]
    return {sign: sum(line.count(sign) for line in plot) for sign in "abcd"}


def test_each_run_has_its_letter_on_its_line_and_in_its_role() -> None:
    traces, scale, _ = PICTURES["four_runs"]
    canvas = draw_overlay(traces, width=100, height=24, scale=scale)
    assert all(num >= 1 for num in letters(canvas).values()), letters(canvas)
    roles = {sign: {s.role for row in canvas.rows()[1:] for s in row if sign in s.text} for sign in "abcd"}
    assert roles == {"a": {Role.DATA}, "b": {Role.SECOND}, "c": {Role.THIRD}, "d": {Role.MARK}}


@pytest.mark.parametrize("width", [1, 2, 7, 20, 61])
@pytest.mark.parametrize("height", [1, 2, 3, 6, 15])
def test_any_canvas_holds_it(width: int, height: int) -> None:
    for traces, scale, levels in PICTURES.values():
        canvas = draw_overlay(traces, width=width, height=height, scale=scale, levels=levels, unit="tokens")
        assert all(sum(len(span.text) for span in row) == width for row in canvas.rows())


def test_what_lies_far_outside_a_run_ends_at_the_edge_and_is_counted() -> None:
    xs = [float(i) for i in range(60)]
    spiked = Trace("a", "v5", xs, [41.5 if i in (0, 30) else 1 + i % 7 / 10 for i in range(60)])
    canvas = draw_overlay([spiked, Trace("b", "v4", xs, [2 + i % 5 / 10 for i in range(60)])], width=60, height=14)
    assert canvas.tally.num_clipped == 2
    assert canvas.text().count("▲") == 3  # Two on the line, one in the note.
    assert "41" not in canvas.text()


def test_no_run_and_no_figure_is_lost_where_names_are_long() -> None:
    names = [f"v5-hardCE-{i}-splitfc-of-a-long-name" for i in range(4)]
    traces = [Trace("abcd"[i], name, [0, 10], [1.0, 2.0], figure=f"{i}.913") for i, name in enumerate(names)]
    head = draw_overlay(traces, width=78, height=8).text().split("\n")[:2]
    assert head == [
        "a ⠒⠒ v5-hardCE-0-s…f-a-long-name 0.913  b ⠂⠂ v5-hardCE-1-s…f-a-long-name 1.913",
        "c ⠒⠂ v5-hardCE-2-s…f-a-long-name 2.913  d ⠂⠂ v5-hardCE-3-s…f-a-long-name 3.913",
    ]

"""The report as one page: what every character of a chart becomes, and that no text of anybody's is more than text."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dflash_tui.charts import Canvas, Role, draw
from dflash_tui.output.html import report_page
from dflash_tui.output.svg import canvas_svg
from dflash_tui.runs import Run
from dflash_tui.store.base import Finding, PanelResult, ResolvedWindow

HOSTILE = "\"'><script>alert(1)</script><img src=http://x/ onerror=alert(1)>&lt;\u202e\x1b[31m\x00</title></svg>-->"
ANY = st.text(st.sampled_from("<>&\"'/=\x00\x1b\u202e\ud800é😀 ax") | st.characters(), max_size=20)
TAGS = {
    "html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "p", "section", "ul", "li", "b", "span",
    "table", "thead", "tbody", "tr", "th", "td", "svg", "path", "text", "details", "summary", "footer",
}  # fmt: skip
ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "class", "id", "data-check", "data-panel", "data-state",
    "viewbox", "role", "aria-label", "d", "x", "y", "textlength", "lengthadjust",
}  # fmt: skip


class Page(HTMLParser):
    """What a browser would find: tags, attributes, and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def page(text: str) -> str:
    run = Run("r-1", text, "train", text, "failed", "nan", 1, None, 1, 10, 100, None, None)
    panels = [
        PanelResult("a", text, "table", "rows", None, text, [text, "n"], ["", ""], [[text, 1], [None, 2.5]], help=text),
        PanelResult(
            "b" + text, "b", "bars", "rows", columns=["x", "y"], units=["", ""], rows=[[text, 1.0], ["z", 2.0]]
        ),
        PanelResult("c", "c", "line", "failed", why=text),
        PanelResult("d", "d", "line", "empty", why=text),
        PanelResult(
            "e",
            text,
            "line",
            "rows",
            columns=["step", "y"],
            rows=[[1, 1.0], [2, 3.0]],
            unit=text,
            axes={"x": "step", "y": "y"},
        ),
    ]
    findings = [Finding(text, text, "critical", text, [1], {}, text), Finding("i", "i", "info", text)]
    return report_page(run, ResolvedWindow("run", 2, 1, 2), panels, findings, "2026-11-29 20:00 UTC")


@given(ANY)
def test_no_text_is_more_than_text(text: str) -> None:
    found = Page(page(text))
    assert found.tags <= TAGS and found.attributes <= ATTRIBUTES


def test_a_hostile_text_reads_as_what_it_is() -> None:
    found = Page(page(HOSTILE))
    words = "".join(found.words)
    assert "<script>alert(1)</script>" in words and "\\u202e\\x1b[31m\\x00" in words
    assert "\x1b" not in words and "\u202e" not in words
    assert found.tags == TAGS and found.attributes == ATTRIBUTES


def test_nothing_is_fetched() -> None:
    text = page("plain")
    assert "default-src 'none'" in text
    assert not re.search(r"\b(src|href)\s*=|url\(|@import|https?:", text)


def test_every_panel_and_finding_is_there() -> None:
    text = page("plain")
    assert re.findall(r'data-panel="(\w+)" data-state="(\w+)"', text) == [
        ("a", "rows"), ("bplain", "rows"), ("c", "failed"), ("d", "empty"), ("e", "rows"),
    ]  # fmt: skip
    assert re.findall(r'<li class="(\w+)" data-check="(\w+)"', text) == [("critical", "plain"), ("info", "i")]
    assert text.count("<svg") == 2 and "<td>-</td>" in text and '<td class="n">2.500</td>' in text


def test_signs_of_charts_are_shapes_and_words_are_text() -> None:
    canvas = Canvas(12, 2)
    canvas.write(0, 0, "⣿▄▌▐┤┬", Role.DATA)
    canvas.shade(6, 0, 0)
    canvas.write(8, 0, "5k <", Role.LABEL)
    tree = ET.fromstring(canvas_svg(canvas, "a <b>"))
    assert tree.get("viewBox") == "0 0 96 32" and tree.get("aria-label") == "a <b>"
    paths = {path.get("class"): path.get("d") or "" for path in tree.findall("path")}
    assert set(paths) == {"c-data", "c-band"}
    assert paths["c-data"].count("z") == 8 + 1 + 1 + 1 + 3 + 3
    assert paths["c-band"].startswith("M48 0h8v16")
    [text] = tree.findall("text")
    assert (text.text, text.get("x"), text.get("textLength"), text.get("class")) == ("5k <", "64", "32", "c-label")


@pytest.mark.parametrize("kind", ["line", "band", "bars", "hist", "spark", "stat"])
@given(st.lists(st.floats(-1e6, 1e6) | st.just(float("nan")), max_size=30))
def test_whatever_a_chart_draws_is_well_formed(kind: str, values: list[float]) -> None:
    rows = [[i, v, v, v] for i, v in enumerate(values)]
    canvas = draw(kind, ["x", "y", "low", "high"], rows, {"low": "low", "high": "high"}, width=60, height=12)
    ET.fromstring(canvas_svg(canvas, kind))

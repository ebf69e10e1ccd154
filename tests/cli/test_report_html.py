"""`report --html` in a real browser: every panel there, nothing requested, a hostile run name harmless."""

import http.server
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dflash_tui import paths
from dflash_tui.runs import RunRecord
from dflash_tui.store.access import writer
from dflash_tui.store.panel_files import load_panels
from tests.checks.made_log import rows, story, write_log

from .conftest import dflash, refused

pytestmark = pytest.mark.usefixtures("home")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="module")
def browser() -> str:
    for name in BROWSERS:
        if found := shutil.which(name):
            return found
    pytest.skip("THE HTML REPORT IS NOT OPENED HERE: no browser: apt-get install chromium, or the like of your system")


def opened(browser: str, file: Path, profile: Path) -> str:
    """The page's elements once it is loaded, as the browser has them."""
    words = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
    ]
    done = subprocess.run(
        [*words, "--disable-component-update", f"--user-data-dir={profile}", "--dump-dom", file.as_uri()],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert "</html>" in done.stdout, done.stderr
    return done.stdout


@contextmanager
def listening() -> Iterator[tuple[str, list[str]]]:
    """A server on this machine: its address, and what was asked of it."""
    asked: list[str] = []

    class Ear(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ear) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def test_a_browser_shows_every_panel_requests_nothing_and_runs_nothing(browser: str, tmp_path: Path) -> None:
    file, wild = tmp_path / "report.html", tmp_path / "wild.html"
    with listening() as (address, asked):
        name = f"<img src={address}/name><script src={address}/script></script>"
        with writer() as store:
            store.register_run(RunRecord("story", name, "ingested"))
        mine = paths.config_dir() / "panels" / "mine.sql"
        mine.parent.mkdir(parents=True)
        mine.write_text(f"-- title: </section>{name}\nselect '{name}' as hostile")
        assert dflash("ingest", str(write_log(tmp_path / "story.jsonl", story(3_000)))).code == 0
        said = dflash("report", "story", "--html", str(file))
        assert (said.code, said.out, said.err) == (0, "", "")
        dom = opened(browser, file, tmp_path / "profile")
        assert asked == []
        # The same words as markup are asked for: the ear hears.
        wild.write_text(f"<!doctype html><title>x</title>{name}")
        opened(browser, wild, tmp_path / "profile")
        assert "/name" in asked
    panels = dict(re.findall(r'data-panel="(\w+)" data-state="(\w+)"', dom))
    assert set(panels) == {panel.name for panel in load_panels()}
    assert panels["loss"] == panels["mine"] == "rows" and panels["acceptance"] == "empty"
    assert "<img" not in dom and "<script" not in dom
    assert f"&lt;img src={address}/name&gt;" in dom
    assert 'data-check="tiny_gradients"' in dom and 'data-check="two_humps"' in dom


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    assert dflash("ingest", str(write_log(tmp_path / "r.jsonl", rows(50)))).code == 0
    file = tmp_path / "page.html"
    assert "exclude each other" in refused(dflash("report", "r", "--json", "--html", str(file)), 2)
    assert "no panel named" in refused(dflash("report", "r", "--panel", "los", "--html", str(file)), 2)
    assert not file.exists()
    assert "nowhere" in refused(dflash("report", "r", "--html", str(tmp_path / "nowhere" / "page.html")), 2)
    assert dflash("report", "r", "--panel", "loss", "--last", "10", "--html", str(file)).code == 0
    text = file.read_text()
    assert re.findall(r'data-panel="(\w+)"', text) == ["loss"] and "10 rows" in text

"""What checks found, on the dashboard: the panel, the marks on charts, the badge; files that are wrong say so there."""

from pathlib import Path

from dflash_tui import paths
from dflash_tui.store.base import Finding
from dflash_tui.store.database import Database
from dflash_tui.ui.findings import as_result, badge, marks_of
from dflash_tui.ui.panel import Panel
from dflash_tui.ui.status import status_parts
from tests.checks.made_log import rows, write_log

from .cockpit import cockpit, make_app, screen_text, sees, sees_no, until
from .scripted_seat import make_run

TINY = Finding(
    "tiny_gradients",
    "vanishing gradients",
    "warning",
    "the median gradient norm is 0.0671 over the last 2,000 rows, below 0.1",
    [20_698, 22_698],
    {"median": 0.0671},
    "compare grad_norm with a run that learns; look at the loss and the learning rate",
)
SPIKE = Finding(
    "spikes",
    "gradient spikes",
    "warning",
    "grad_norm spiked to 41.5 at step 11,204, 609 times its median",
    [11_204],
    {},
    "look at the loss and the batch at these steps",
)
STREAK = Finding(
    "nan_streak", "NaN streak", "critical", "loss is not finite in 40 rows in a row", [22_600], {}, "go back"
)
INFO = Finding("unlogged", "keys nobody logs", "info", "acceptance needs tau_linear_macro")
FINDINGS = [STREAK, TINY, SPIKE, INFO]


async def test_the_worst_comes_first_and_charts_and_status_tell_of_it() -> None:
    async with cockpit([make_run("sick")], (120, 40)) as (pilot, seat):
        await pilot.press("enter")
        await sees(pilot, "✓ no findings")
        assert "▲" not in screen_text(pilot.app).splitlines()[0]
        seat.store.findings = FINDINGS
        seat.store.known[0] = make_run("other")
        await pilot.press("1")
        seat.advanced(None)
        await sees(pilot, "other")
        await pilot.press("enter")
        await sees(pilot, "✖ 1 ▲ 2", "✖ NaN streak", "→ go back", "▲ vanishing gradients")
        await until(pilot, lambda: "✖ 1 ▲ 2" in screen_text(pilot.app).splitlines()[0], "the count in the status line")
        text = screen_text(pilot.app)
        assert text.index("NaN streak") < text.index("vanishing gradients")
        # One sentence has its next, the others when there is room.
        await sees_no(pilot, "look at the loss and the batch")
        await pilot.press("tab", "tab", "z")
        await sees(pilot, "→ look at the loss and the batch at these steps", "· keys nobody logs")
        await pilot.press("question_mark")
        await sees(pilot, "What the checks find of this run")


async def test_what_was_not_there_to_be_checked_is_looked_for_as_soon_as_it_is() -> None:
    """Findings are asked for seldom, ten seconds apart at least."""
    async with cockpit([make_run("young", step=None)], (120, 40)) as (pilot, seat):
        seat.store.findings = [Finding("unchecked", "nothing to check", "info", "no step is logged so far")]
        await pilot.press("enter")
        await sees(pilot, "no step is logged so far")
        seat.store.findings = []
        seat.store.known[0] = make_run("young", step=1)
        seat.advanced("young")
        await sees(pilot, "✓ no findings")


def test_marks_are_on_the_charts_of_the_figures_concerned() -> None:
    marks = marks_of(FINDINGS)
    assert [(mark.x, mark.label, mark.sign) for mark in marks["grad_norm"]] == [
        (22_600, "✖ NaN streak", "✖"),
        (20_698, "▲ vanishing gradients", "▲"),
        (22_698, "", "▲"),
        (11_204, "▲ gradient spikes", "▲"),
    ]
    assert [mark.sign for mark in marks["loss"]] == ["✖"]
    assert marks["throughput"] == () and marks["lr"] == ()
    looks = {part.text: part.look for part in status_parts(make_run("sick"), None, (), 0.0, badge(FINDINGS))}
    assert looks["✖ 1 ▲ 2"] == "tone--bad"
    assert {mark.is_bad for mark in marks_of([TINY, SPIKE])["grad_norm"]} == {False}
    assert {mark.is_bad for mark in marks_of([STREAK])["loss"]} == {True}
    assert badge([]) == "" and badge([INFO]) == "" and badge([TINY]) == "▲ 1"
    nothing = Finding("unchecked", "nothing to check", "info", "training cannot be checked yet")
    assert (as_result([nothing]).state, as_result([nothing]).why) == ("empty", "training cannot be checked yet")
    assert as_result([TINY, nothing]).state == "rows"
    assert as_result([TINY]).rows[0][:3] == ["warning", "vanishing gradients", TINY.sentence]


async def test_a_panel_and_a_check_that_are_wrong_say_file_and_line_in_their_place(home: Path, tmp_path: Path) -> None:
    for folder, text in (
        ("panels", "-- title: mine\n-- order: 21\nselect loss,\n  los from steps"),
        ("checks", "\nselect los from steps"),
    ):
        file = paths.config_dir() / folder / "mine.sql"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    paths.private_dir(paths.data_dir())
    app = make_app([])
    with Database(paths.database_file()) as store:
        store.ingest("r", write_log(tmp_path / "log", rows(300)))
        app.seat.store = store  # type: ignore[attr-defined]
        async with app.run_test(size=(200, 60)) as pilot:
            await sees(pilot, "300/73,290")
            await pilot.press("enter")
            # As a finding and as a panel; all others go on.
            await until(pilot, lambda: "▲ 1" in screen_text(app), "a badge")
            await sees(pilot, "gradient norm", "p50")
            await pilot.press("tab", "tab", "z")
            await sees(pilot, "/checks/mine.sql:2: there is no column 'los' here", "· keys nobody logs")
            names = [panel.name for panel in app.screen.query(Panel)]
            await pilot.press(*["tab"] * (names.index("mine") - 2))
            await sees(pilot, "✗", "/panels/mine.sql:4: there is no column 'los' here")

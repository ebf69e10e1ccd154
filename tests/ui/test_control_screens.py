"""Launch, stop and resume by keys alone: what is asked first, what is shown meanwhile, what is said when it fails."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.widgets import TextArea

from dflash_tui.errors import HostError, UsageError
from dflash_tui.requests import CloneRequest, LaunchRequest
from dflash_tui.ui.recipe_draft import config_lines, draft
from dflash_tui.ui.stop_screen import StopScreen

from .cockpit import cockpit, screen_lines, screen_text, sees, sees_no, types, until
from .scripted_seat import make_run

RUN = make_run("v5-hard")
RECIPE = 'target = "tiny"\nlr = 0.0006\nblock_size = 8\n'


@pytest.fixture(autouse=True)
def recipe_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recipe of one's own in the folder that the session runs in: short to type."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "my.toml"
    file.write_text(RECIPE)
    return file


async def fill_in_file(pilot: Any, file: str = "my.toml") -> None:
    """Choose "a file ..." and type its path; ends in the field of the path."""
    await sees(pilot, "New run")
    await pilot.press("enter", "end", "enter")
    await until(pilot, lambda: pilot.app.focused is not None and pilot.app.focused.id == "path", "the path in focus")
    await types(pilot, file)


async def test_a_run_is_launched_by_keys_alone(recipe_file: Path) -> None:
    async with cockpit([RUN]) as (pilot, seat):
        await pilot.press("n")
        await fill_in_file(pilot)
        await sees(pilot, "block_size = 8", 'target = "tiny"')
        await pilot.press("tab", "tab")
        await types(pilot, "first-try")
        await pilot.press("tab")
        await types(pilot, "lr=0.001")
        await sees(pilot, "* lr = 0.001")
        seat.gate.clear()
        await pilot.press("ctrl+s")
        await sees(pilot, "launching on local")
        seat.gate.set()
        await sees(pilot, "● running", "first-try", "step 1/600", "first-try runs on local")
    request = LaunchRequest(str(recipe_file), "local", "first-try", ("lr=0.001",))
    assert ("launch", request) in seat.said


async def test_a_run_is_given_gpus_and_an_environment_in_the_form(home: Path) -> None:
    home.mkdir(exist_ok=True)
    file = home / "my.env"
    file.write_text("HF_TOKEN=secret\n")
    async with cockpit([RUN], size=(80, 24)) as (pilot, seat):
        await pilot.press("n")
        await sees(pilot, "✓ 12 ms")
        await pilot.press(*["tab"] * 4)
        await types(pilot, "0,0")
        await sees(pilot, "0,0: write the numbers of", "GPUs, each once")
        await pilot.press("ctrl+s", "backspace")
        await types(pilot, "1")
        await pilot.press("tab")
        await types(pilot, f"{file}x")
        await until(pilot, lambda: pilot.app.screen.query_one("#env-file-error").display, "what is wrong with the file")
        await sees(pilot, "env file")
        await pilot.press("shift+tab", "ctrl+s")
        assert pilot.app.focused and pilot.app.focused.id == "env-file", "the field that is wrong"
        await pilot.press("end", "backspace")
        await sees(pilot, "with: CUDA_VISIBLE_DEVICES, HF_TOKEN")
        await pilot.press("ctrl+s")
        await sees(pilot, "step 1/600")
        assert "secret" not in screen_text(pilot.app)
    assert [request for what, request in seat.said if what == "launch"] == [
        LaunchRequest("tiny", "local", gpus="0,1", env_file=str(file))
    ]


async def test_the_form_checks_at_every_key_and_a_wrong_one_is_not_launched(recipe_file: Path) -> None:
    async with cockpit([RUN], size=(80, 24)) as (pilot, seat):
        await pilot.press("n")
        await fill_in_file(pilot, "no.toml")
        await sees(pilot, "no.toml: no such recipe")
        recipe_file.rename("no.toml")
        await pilot.press("tab", "tab", "tab")
        assert isinstance(pilot.app.focused, TextArea)
        await types(pilot, "warmup_ratoi=0.1")
        await sees(pilot, "did you mean", "warmup_ratio")
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert not [what for what, _ in seat.said if what == "launch"]
        await pilot.press("escape")
        await sees(pilot, "Runs 1")


async def test_the_rule_of_the_key_under_the_cursor_is_shown() -> None:
    async with cockpit([RUN]) as (pilot, _):
        await pilot.press("n")
        await fill_in_file(pilot)
        await pilot.press("tab", "tab", "tab")
        await types(pilot, "noise.")
        await sees(pilot, "noise.std")
        await types(pilot, "std=0.1")
        await sees(pilot, "noise.std: a number")


async def test_a_run_is_cloned_with_the_changes_marked_and_what_they_were() -> None:
    config = {"target": "tiny", "lr": 0.0006, "block_size": 8}
    async with cockpit([RUN, make_run("old", host=None, kind="ingested")], size=(80, 24)) as (pilot, seat):
        seat.store.configs = {"v5-hard": config}
        await pilot.press("c")
        await sees(pilot, "A run like v5-hard", "data.max_seq_len = 3072")
        await types(pilot, "lr=0.001")
        await sees(pilot, "* lr = 0.001  (was 0.0006)", "lr: a number above 0", "default 0.0006")
        await pilot.press("ctrl+s")
        await sees(pilot, "step 1/600")
        assert ("clone", CloneRequest("v5-hard", ("lr=0.001",), None, "gpu2", "v5-hard-2")) in seat.said
        await pilot.press("1", "G", "c")
        await pilot.pause()
        assert "A run like" not in screen_text(pilot.app), "nobody here knows how an ingested run was started"


async def test_the_form_tells_what_the_host_says_and_what_will_run_and_its_keys_stay_in_sight() -> None:
    async with cockpit([RUN], size=(80, 24)) as (pilot, seat):
        seat.silent_hosts["gpu2"] = "gpu2: no torch in /opt/venv/bin/python: pip install torch there " * 3
        await pilot.press("n")
        await sees(
            pilot, "✓ 12 ms · Python 3.11.7, torch 2.13.0 · 412 GiB free", "runs: /opt/venv/bin/python -m trainer"
        )
        await pilot.press("tab", "tab", "tab")
        await types(pilot, "target=/gone")
        await sees(pilot, "✗ local has no /gone")
        await pilot.press("shift+tab", "shift+tab", "enter", "down", "enter")
        await sees(pilot, "✗ gpu2: no torch", "ctrl+s launch")
        assert any("ctrl+s launch" in line for line in screen_lines(pilot.app)[-3:])


async def test_a_launch_that_fails_is_said_in_the_form_and_can_be_tried_again() -> None:
    async with cockpit([RUN]) as (pilot, seat):
        await pilot.press("n")
        await fill_in_file(pilot)
        seat.trouble = HostError("local: no python3 at /nowhere/python; set hosts.local.python")
        await pilot.press("ctrl+s")
        await sees(pilot, "no python3 at /nowhere/python", "New run")
        seat.trouble = None
        await pilot.press("ctrl+s")
        await sees(pilot, "● running", "my.toml")


def test_a_wrong_line_leaves_the_marks_of_those_that_are_right() -> None:
    made = draft("paper", ("lr=0.001", "lrr=1", "gamma=5"))
    assert made.trouble.startswith("unknown key 'lrr'")
    marked = {text for text, is_changed in config_lines(made) if is_changed}
    assert marked == {"lr = 0.001  (was 0.0006)", "gamma = 5  (was 7.0)"}


async def test_one_key_launches_the_last_one_again() -> None:
    async with cockpit([RUN]) as (pilot, seat):
        seat.last = LaunchRequest("paper", "gpu2", "again", ("lr=0.001",))
        # Not where it may be typed, or meant for something else.
        for screen, words in (("6", "No runs are marked."), ("4", "$run = v5-hard")):
            await pilot.press(screen)
            await sees(pilot, words)
            await pilot.press("escape" if screen == "4" else "j", "L")
            assert "launch" not in {what for what, _ in seat.said}
        await pilot.press("1", "L")
        await sees(pilot, "again", "step 1/600")
        assert ("launch", seat.last) in seat.said


async def test_without_a_last_launch_the_same_key_opens_the_form() -> None:
    async with cockpit([]) as (pilot, _):
        await pilot.press("L")
        await sees(pilot, "New run", "nothing was launched from here yet")


async def test_one_key_launches_again_and_trouble_is_a_toast() -> None:
    async with cockpit([RUN]) as (pilot, seat):
        seat.last = LaunchRequest("paper", "gpu2")
        seat.trouble = UsageError("no recipe named 'paper'")
        await pilot.press("L")
        await sees(pilot, "no recipe named 'paper'", "Runs 1")


async def test_stopping_names_the_run_asks_and_shows_how_it_goes() -> None:
    async with cockpit([RUN]) as (pilot, seat):
        await pilot.press("X")
        await sees(pilot, "Stop v5-hard on gpu2?", "pid 4121", "started 2h 11m ago", "step 22,698", "2m 00s")
        assert not [what for what, _ in seat.said if what in ("stop", "kill")]
        seat.gate.clear()
        await pilot.press("enter")
        await sees(pilot, "Stopping v5-hard on gpu2", "ctrl+k kill now")
        seat.gate.set()
        await sees_no(pilot, "Stopping")
        await sees(pilot, "■ stopped", "v5-hard is stopped")
        assert ("stop", "v5-hard") in seat.said


async def test_esc_keeps_the_run() -> None:
    async with cockpit([RUN], run_id="v5-hard") as (pilot, seat):
        await pilot.press("X")
        await sees(pilot, "Stop v5-hard on gpu2?")
        await pilot.press("escape")
        await sees_no(pilot, "Stop v5-hard")
        assert not [what for what, _ in seat.said if what in ("stop", "kill")]


async def test_killing_is_another_key_also_while_stopping() -> None:
    async with cockpit([RUN]) as (pilot, seat):
        seat.gate.clear()
        await pilot.press("X", "enter")
        await sees(pilot, "Stopping v5-hard")
        await pilot.press("ctrl+k")
        await sees(pilot, "Killing v5-hard")
        seat.gate.set()
        await sees(pilot, "■ stopped")
        assert [what for what, _ in seat.said if what in ("stop", "kill")] == ["stop", "kill"]


async def test_the_stop_dialog_tells_the_last_checkpoint_and_counts_the_grace_down() -> None:
    async with cockpit([RUN]) as (pilot, seat):
        seat.gate.clear()
        await pilot.press("X")
        await sees(pilot, "last checkpoint: its log tells of none")
        await pilot.press("escape")
        seat.store.checkpoints = [(22_500, "/c/22500", 7e8, time.time() - 7900)]
        now = [1000.0]
        pilot.app.push_screen(StopScreen(seat, RUN, lambda: now[0]))
        await sees(pilot, "last checkpoint: step 22,500, 198 steps back, 2h 11m ago")
        await pilot.press("enter")
        now[0] += 30
        await sees(pilot, "30 s since it was asked", f"{'━' * 30}{'─' * 10} killed in 1m 30s")
        seat.store.checkpoints = [(22_698, "/c/22698", 7e8, time.time() - 7900)]
        await sees(pilot, "last checkpoint: step 22,698, 2h 11m ago")
        seat.store.trouble = HostError("the store is held by process 4121")
        now[0] += 100
        await sees(pilot, "The grace of 2m 00s is over: it is being killed.")
        await pilot.press("ctrl+k")
        await sees(pilot, "Killing v5-hard", "0 s since it was asked.")
        seat.store.trouble = None
        seat.gate.set()
        await sees(pilot, "v5-hard is stopped")


async def test_a_run_of_somebody_else_is_stopped_by_its_process() -> None:
    async with cockpit([RUN]) as (pilot, seat):
        detail = seat.store.detail("v5-hard")
        record = replace(detail.record, kind="adopted", config={"how": "open", "argv": ["python", "train.py\x1b"]})
        seat.store.detail = lambda run_id: msgspec.structs.replace(detail, record=record)
        await pilot.press("X")
        await sees(pilot, "It was not started from", "Process 4121", "python train.py\\x1b")


async def test_a_stop_that_fails_is_said_in_the_dialog() -> None:
    async with cockpit([RUN]) as (pilot, seat):
        seat.trouble = HostError("gpu2: no contact for 41 s")
        await pilot.press("X", "enter")
        await sees(pilot, "gpu2: no contact for 41 s", "Stop v5-hard on gpu2?")


async def test_a_stop_goes_on_when_its_dialog_is_closed() -> None:
    async with cockpit([RUN]) as (pilot, seat):
        seat.gate.clear()
        await pilot.press("X", "enter")
        await sees(pilot, "Stopping v5-hard")
        await pilot.press("escape")
        await sees_no(pilot, "Stopping")
        seat.gate.set()
        await sees(pilot, "■ stopped", "v5-hard is stopped")


async def test_resuming_needs_no_question_and_says_the_attempt() -> None:
    async with cockpit([make_run("v5-hard", state="stopped", reason="stopped")]) as (pilot, seat):
        await pilot.press("r")
        await sees(pilot, "● running", "attempt 2")
        assert ("resume", "v5-hard") in seat.said


async def test_a_running_run_cannot_be_resumed_nor_an_ended_one_stopped() -> None:
    async with cockpit([RUN, make_run("old", state="finished")]) as (pilot, seat):
        await pilot.press("r", "j", "X")
        await pilot.pause()
        assert "Stop" not in screen_text(pilot.app)
        assert not [what for what, _ in seat.said if what != "focus"]


async def test_the_keys_follow_the_run_when_its_state_changes() -> None:
    async with cockpit([RUN], run_id="v5-hard") as (pilot, seat):
        assert pilot.app.screen.active_bindings["X"].enabled
        seat.store.change("v5-hard", state="failed", reason="nan")
        seat.advanced("v5-hard")
        await sees(pilot, "✗ failed: nan")
        await until(pilot, lambda: pilot.app.screen.active_bindings["r"].enabled, "resume offered")
        assert not pilot.app.screen.active_bindings["X"].enabled

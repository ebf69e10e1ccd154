"""How a run's state is shown: a glyph, a word and a tone, so that colour never says it alone."""

from dflash_tui.runs import Run, RunState

GLYPHS: dict[str, str] = {
    RunState.ABSENT: "○",
    RunState.STARTING: "◌",
    RunState.RUNNING: "●",
    RunState.STOPPING: "◐",
    RunState.FINISHED: "✓",
    RunState.STOPPED: "■",
    RunState.INTERRUPTED: "‖",
    RunState.FAILED: "✗",
    RunState.ORPHANED: "◇",
    RunState.LOST: "?",
}
_TONES: dict[str, str] = {
    RunState.STARTING: "busy",
    RunState.RUNNING: "live",
    RunState.STOPPING: "busy",
    RunState.FINISHED: "good",
    RunState.FAILED: "bad",
    RunState.ORPHANED: "warn",
    RunState.LOST: "warn",
}
TONE_CLASSES = {f"tone--{tone}" for tone in ("live", "busy", "good", "bad", "warn", "quiet")}
_BY_LIVELINESS = (
    RunState.ABSENT,
    RunState.FINISHED,
    RunState.STOPPED,
    RunState.INTERRUPTED,
    RunState.FAILED,
    RunState.LOST,
    RunState.ORPHANED,
    RunState.STOPPING,
    RunState.STARTING,
    RunState.RUNNING,
)
# A live run's host is asked every 10 s at least, and its answer is noted every 5 s: less than this is no silence.
SILENT_S = 20.0
# What the far side can still be asked to do with a run, by its state.
_STOPPABLE = frozenset({RunState.STARTING, RunState.RUNNING, RunState.STOPPING, RunState.ORPHANED})
_RESUMABLE = frozenset({RunState.STOPPED, RunState.INTERRUPTED, RunState.FAILED, RunState.LOST})


def glyph(state: str) -> str:
    return GLYPHS.get(state, "·")


def liveliness(state: str) -> int:
    """The greater, the more a person has to do with a run in this state."""
    return _BY_LIVELINESS.index(state) if state in _BY_LIVELINESS else -1


def tone_class(state: str) -> str:
    """The component class that colours a state."""
    return f"tone--{_TONES.get(state, 'quiet')}"


def state_words(run: Run) -> str:
    """running, failed: oom-gpu. A reason that only repeats the state is left out."""
    if run.reason is None or run.reason in (run.state, "completed", "saved"):
        return run.state
    return f"{run.state}: {run.reason}"


def silence_s(run: Run, since_s: float = 0.0) -> float | None:
    """For how long the host of a live run has been silent, `since_s` after the store was asked; None: it answers.

    That a screen was not looked at for a while, and nothing was asked meanwhile, is no silence.
    """
    if run.no_contact_s is None or run.no_contact_s < SILENT_S:
        return None
    return run.no_contact_s + since_s


def is_stoppable(run: Run | None) -> bool:
    return run is not None and run.host is not None and run.state in _STOPPABLE


def is_resumable(run: Run | None) -> bool:
    return run is not None and run.host is not None and run.kind != "adopted" and run.state in _RESUMABLE


def is_clonable(run: Run | None) -> bool:
    """A script is cloned with other words, on a command line."""
    return run is not None and run.host is not None and run.kind == "train"

"""New warnings of followed runs: told once, given to a command once, whoever owns the store."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dflash_tui import alerts, config, paths
from dflash_tui.alerts import Alert, Alerts
from dflash_tui.config import AlertsSpec
from dflash_tui.store.database import Database
from dflash_tui.store.mirror import Mirror
from dflash_tui.watch import Session
from tests.checks.made_log import Row, rows, story, write_log

PATIENCE_S = 20.0
# What comes on stdin goes into a file, with the words as they were given.
NOTE = "import json, sys; print(json.dumps([sys.argv[2:], json.load(sys.stdin)]), file=open(sys.argv[1], 'a'))"


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "GAP_S", 0.0)
    monkeypatch.setattr(alerts, "BUSY_SHARE", 1.0)


@pytest.fixture
def store(home: Path) -> Iterator[Database]:
    paths.private_dir(paths.data_dir())
    with Database(paths.database_file()) as database:
        yield database


class Heard:
    def __init__(self, store: Database, *command: str) -> None:
        self.alerts: list[Alert] = []
        self.failures: list[str] = []
        self.num_asked = 0
        self._store = store
        self.one = Alerts(AlertsSpec(command=command), self._ask, self.alerts.append, self.failures.append)

    async def _ask(self, work: Callable[[Any], Any]) -> Any:
        found = await asyncio.to_thread(work, self._store)
        self.num_asked += 1
        return found

    @property
    def checks(self) -> list[str]:
        return [alert.finding.check for alert in self.alerts]

    async def looks(self, run_id: str) -> None:
        """Once more, to its end."""
        before = self.num_asked
        self.one.mark(run_id)
        await until(lambda: self.num_asked > before)
        await asyncio.sleep(0.01)

    @asynccontextmanager
    async def running(self, *, is_owner: bool = True) -> AsyncIterator["Heard"]:
        task = asyncio.create_task(self.one.run(lambda: is_owner))
        yield self
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)


def sick(steps: int, **last: Any) -> list[Row]:
    made = list(rows(steps, is_sick=False, change=lambda row, dice: row | {"grad_norm": 0.01}))
    return [*made[:-3], *(row | last for row in made[-3:])]


async def test_a_warning_is_told_once_and_given_to_the_command_once(store: Database, tmp_path: Path) -> None:
    log, told = tmp_path / "r.jsonl", tmp_path / "told"
    words = ("$(touch pwned)", "; a b", "'")
    async with Heard(store, sys.executable, "-c", NOTE, str(told), *words).running() as heard:
        store.ingest("r", write_log(log, rows(300)))
        await heard.looks("r")
        assert heard.alerts == []
        store.ingest("r", write_log(log, sick(300)))
        await heard.looks("r")
        await until(lambda: told.exists() and told.read_text().endswith("\n"))
        store.ingest("r", write_log(log, sick(400, loss="NaN")))
        await heard.looks("r")
        await until(lambda: told.read_text().count("\n") == 2)
        await heard.looks("r")
        assert heard.checks == ["tiny_gradients", "nan_streak"] and heard.failures == []
    argv, tiny = json.loads(told.read_text().splitlines()[0])
    assert argv == list(words)
    assert (tiny["run_id"], tiny["check"], tiny["severity"]) == ("r", "tiny_gradients", "warning")
    assert tiny["sentence"].startswith("the median gradient norm is 0.01") and tiny["next"] and tiny["steps"]
    # The next session knows what was told.
    async with Heard(store, sys.executable, "-c", NOTE, str(told)).running() as later:
        await later.looks("r")
        assert later.alerts == []
    assert told.read_text().count("\n") == 2


async def test_who_does_not_own_the_store_tells_and_commands_nothing(store: Database, tmp_path: Path) -> None:
    store.ingest("r", write_log(tmp_path / "log", sick(300)))
    async with Heard(store, "/no/such/program").running(is_owner=False) as client:
        await client.looks("r")
        assert client.checks == ["tiny_gradients"] and client.failures == []
        async with Heard(store, "/no/such/program").running() as owner:
            await owner.looks("r")
            await until(lambda: owner.failures)
        assert owner.checks == ["tiny_gradients"]


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("import time; time.sleep(60)", "took longer than 0 s and was ended"),
        ("import sys; sys.exit(3)", "ended with 3"),
    ],
)
async def test_a_command_that_hangs_or_fails_is_told(
    store: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, says: str
) -> None:
    monkeypatch.setattr(alerts, "COMMAND_S", 0.3 if "sleep" in program else 20.0)
    store.ingest("r", write_log(tmp_path / "log", sick(300)))
    async with Heard(store, sys.executable, "-c", program).running() as heard:
        await heard.looks("r")
        await until(lambda: heard.failures)
    assert says in heard.failures[0] and "alerts.command" in heard.failures[0]


async def test_a_command_that_hangs_goes_with_all_that_it_began(
    store: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alerts, "COMMAND_S", 1.0)
    store.ingest("r", write_log(tmp_path / "log", sick(300)))
    async with Heard(store, "sh", "-c", f"sleep 600 & echo $! > {tmp_path}/pid; wait").running() as heard:
        await heard.looks("r")
        await until(lambda: heard.failures)
    pid = int((tmp_path / "pid").read_text())
    await until(lambda: not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text())


async def test_a_command_that_is_no_words_and_a_file_that_is_none_are_sentences(
    store: Database, tmp_path: Path
) -> None:
    store.ingest("r", write_log(tmp_path / "log", sick(300)))
    async with Heard(store, "no\0program").running() as heard:
        await heard.looks("r")
        await until(lambda: heard.failures)
        assert "alerts.command: no\\x00program: embedded null byte" in heard.failures[0]
    file = Mirror("r").folder / "alerts.jsonl"
    file.unlink()
    file.mkdir()
    async with Heard(store, "/no/such/program").running() as heard:
        await heard.looks("r")
        await until(lambda: len(heard.failures) > 1)
        await heard.looks("r")
        assert heard.checks == ["tiny_gradients"]
    assert ["cannot be read" in one for one in heard.failures] == [True, False]
    assert "cannot be written" in heard.failures[1]


async def test_a_session_hears_of_the_runs_that_it_follows(tmp_path: Path) -> None:
    session = Session(config.load(), lambda run_id: None)
    heard: list[Alert | str] = []
    session.alerted = heard.append
    await session.open()
    try:
        await session.ask(lambda store: store.ingest("r", write_log(tmp_path / "log", story(400))))
        session._advanced("r")
        await until(lambda: heard)
    finally:
        await session.close()
    [alert] = [alert for alert in heard if isinstance(alert, Alert) and alert.finding.check == "tiny_gradients"]
    assert alert.run.run_id == "r"

"""A secret of a run's environment lies in one file of the far side that is ours alone, and nowhere else on the way."""

import os
import stat
from pathlib import Path

from dflash_tui import control, paths
from dflash_tui.config import Config, HostSpec
from dflash_tui.hosts import journal
from dflash_tui.requests import CloneRequest, ScriptRequest
from dflash_tui.watch import Session

from ..remote.far_side import until
from .conftest import FOLDER, Reach

SECRET = "hf_0123456789abcdefghijklmnopqrstuv"
SCRIPT = "import os, time\nprint({'step': len(os.environ['HF_TOKEN']), 'loss': 1.0})\ntime.sleep(600)\n"


async def test_a_secret_is_seen_by_the_run_alone(reach: Reach, spec: HostSpec, tmp_path: Path) -> None:
    script, env = tmp_path / "trains.py", tmp_path / "secrets.env"
    script.write_text(SCRIPT)
    env.write_text(f"HF_TOKEN={SECRET}\n")
    session = Session(Config(hosts={spec.name: spec}), lambda run_id: None)
    await session.open()
    try:
        request = ScriptRequest(script, spec.name, name="one", env_file=str(env))
        first = (await control.launch_script(session, request)).run_id
        # The same again, with what its host remembers of it.
        second = (await control.clone(session, CloneRequest(first))).run_id
        for run_id in (first, second):
            await until(lambda run_id=run_id: step_of(session, run_id) == len(SECRET), f"{run_id} has it", 30)
        assert commands_with_it() == []
        assert not [command for command in journal.commands() if SECRET in str(command)]
        for run_id in (first, second):
            await control.stop(session, run_id, kill=True)
    finally:
        await session.close()
    assert files_with_it(paths.data_dir(), without=reach.here) == []
    runs = reach.here / FOLDER / "dflash-runs"
    assert files_with_it(reach.here) == [runs / run / "attempts/1/spec.json" for run in sorted((first, second))]
    for run in (first, second):
        assert stat.S_IMODE((runs / run / "attempts/1/spec.json").stat().st_mode) == 0o600
        assert stat.S_IMODE((runs / run).stat().st_mode) == 0o700


def step_of(session: Session, run_id: str) -> int | None:
    with session.store.query("select max(step) from steps where run = $run", {"run": run_id}) as answer:
        [(step,)] = answer.rows()
        return None if step is None else int(step)


def commands_with_it() -> list[bytes]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if SECRET.encode() in words:
                found.append(words)
    return found


def files_with_it(folder: Path, without: Path | None = None) -> list[Path]:
    files = [Path(place, name) for place, _, names in os.walk(folder) for name in names]
    plain = [file for file in files if file.is_file() and not (without and file.is_relative_to(without))]
    return sorted(file for file in plain if SECRET.encode() in file.read_bytes())

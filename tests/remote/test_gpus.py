"""GPUs and whose they are: what is not visible is never called free, and nothing waits for a slow tool."""

import json
import os
import time
from pathlib import Path

import pytest

from dflash_tui.config import HostSpec
from dflash_tui.remote.agent import gpus as far_gpus
from dflash_tui.remote.client import AgentClient, Json
from dflash_tui.remote.machine import begin_look, overview, taken_gpus

from .conftest import Start
from .nvidia import FakeNvidiaSmi

CASES = Path(__file__).parents[1] / "data" / "cases"
HEAD = "index, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%], temperature.gpu, power.draw [W]\n"
APPS = "gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n"


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNvidiaSmi:
    """Before the agent starts, whose PATH is ours."""
    tool = FakeNvidiaSmi(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tool.folder}:{os.environ['PATH']}")
    return tool


@pytest.fixture
def far(smi: FakeNvidiaSmi, far: HostSpec) -> HostSpec:
    return far


async def sample(agent: AgentClient, runs: list[str], since: float = 0.0) -> Json:
    end = time.monotonic() + 60
    while (found := await agent.do("gpus", every_s=0, since=since, runs=runs))["time"] is None:
        assert time.monotonic() < end
    return found


async def test_a_container_hides_whose_memory_it_is(agent: AgentClient, smi: FakeNvidiaSmi) -> None:
    """case78."""
    expected = json.loads((CASES / "case78_nvidia_smi.expected.json").read_text())
    cards, apps = ((CASES / f"case78_nvidia_smi_{name}.csv").read_text() for name in ("gpu", "apps"))
    smi.say(cards, apps)
    found = (await overview(agent)).gpus
    assert found is not None
    assert [str(gpu) for gpu in found] == [expected["gpu0"], expected["gpu1"], expected["gpu2"]]
    assert (found[2].memory_used_mib, found[2].utilization_pct) == (None, None)
    for visible, num_warnings in ((None, 1), ("0", 1), ("0,1", 1), ("1,2", 0)):
        await begin_look(agent)
        warned = await taken_gpus(agent, visible)
        assert len(warned) == num_warnings
        assert all("40.0 GiB of 80.0 GiB used, owner not visible" in words for words in warned)


async def test_a_tool_that_fails_or_is_not_there_is_no_machine_without_gpus(
    agent: AgentClient, smi: FakeNvidiaSmi
) -> None:
    smi.fail("Failed to initialize NVML: Driver/library version mismatch")
    view = await overview(agent)
    assert view.gpus is None
    assert view.no_gpus == "nvidia-smi: Failed to initialize NVML: Driver/library version mismatch"
    (smi.folder / "nvidia-smi").unlink()
    assert (await overview(agent)).no_gpus == "no nvidia-smi here"
    await begin_look(agent)
    assert await taken_gpus(agent, None) == []


async def test_processes_are_those_of_runs_where_they_can_be_seen(
    start: Start, agent: AgentClient, smi: FakeNvidiaSmi
) -> None:
    run = await start()
    cards = "0, E, 10240, 81920, 97, 61, 412.5\n1, E, 2048, 81920, 3, 40, 90\n2, E, 3, 81920, 0, 35, 60\n"
    apps = f'GPU-0, {run.status.pid}, "python, with a comma", 9000\nGPU-0, 1, init, [N/A]\nGPU-1, 4194000, gone, 2040\n'
    smi.say(HEAD + cards, APPS + apps)
    found = (await overview(agent)).gpus
    assert found is not None
    assert str(found[0]) == "10.0 GiB of 80.0 GiB used by run toy-1, pid 1 (init)"
    assert str(found[1]) == "2.0 GiB of 80.0 GiB used by pid 4194000 (gone)"
    assert (found[0].temperature_c, found[0].power_w, str(found[2])) == (61, 412.5, "free")
    assert (await sample(agent, ["toy-1", "none"]))["runs"] == {"toy-1": [[0, 9000.0]], "none": []}


async def test_hidden_memory_is_that_of_the_gpus_a_run_may_use(
    start: Start, agent: AgentClient, smi: FakeNvidiaSmi
) -> None:
    run = await start()
    smi.say(f"{HEAD}0, E, 9000, 81920, 97, 1, 1\n1, E, 9000, 81920, 97, 1, 1\n2, E, 3, 81920, 0, 1, 1\n")
    found = await sample(agent, ["toy-1"])
    assert found["runs"] == {"toy-1": [[0, None], [1, None]]}
    spec = Path(str(run.record.path), "attempts/1/spec.json")
    for devices, expected in (("1,2", [[1, None]]), ("GPU-0", [[0, None]]), ("", []), ("-1", [])):
        spec.write_text(json.dumps({**json.loads(spec.read_text()), "env": {"CUDA_VISIBLE_DEVICES": devices}}))
        found = await sample(agent, ["toy-1"], since=found["time"])
        assert found["runs"] == {"toy-1": expected}, devices


async def test_a_slow_tool_holds_up_nothing_and_is_asked_once_at_a_time(agent: AgentClient, smi: FakeNvidiaSmi) -> None:
    smi.say(f"{HEAD}0, E, 9000, 81920, 97, 1, 1\n")
    smi.be_slow(2)
    begun = time.monotonic()
    for _ in range(20):
        assert (await agent.do("gpus", every_s=0, runs=[]))["time"] is None
    assert time.monotonic() - begun < 2
    found = await sample(agent, [])
    assert len(found["gpus"]) == 1 and found["age_s"] >= 0.4
    # What was told is not told again.
    assert (await agent.do("gpus", every_s=3600, since=found["time"], runs=[]))["time"] is None


def test_a_tool_that_hangs_is_given_up(smi: FakeNvidiaSmi, monkeypatch: pytest.MonkeyPatch) -> None:
    smi.be_slow(60)
    monkeypatch.setattr(far_gpus, "TIMEOUT_S", 0.2)
    found = far_gpus.Asking().wait()
    assert found == {"gpus": None, "why": "nvidia-smi gives no answer within 0 s"}


async def test_what_a_machine_says_of_its_gpus_is_not_believed(agent: AgentClient, smi: FakeNvidiaSmi) -> None:
    smi.say(f"{HEAD}0, E\x1b[2J, 1e400, nan, inf, -1, x\nx, short\n")
    gpu, other = (await overview(agent)).gpus or ()
    assert (gpu.memory_used_mib, gpu.memory_total_mib, gpu.utilization_pct) == (None, None, None)
    assert "\x1b" not in gpu.name and (other.index, str(other)) == (None, "unknown")

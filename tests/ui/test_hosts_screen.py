"""The Hosts screen by keys alone, over scripted hosts: what is asked of whom, what is told, what a key does here."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Select

from dflash_tui.config import HostSpec
from dflash_tui.errors import UnreachableError
from dflash_tui.hosts.containers import Container
from dflash_tui.machines import Look
from dflash_tui.remote.check import Finding
from dflash_tui.requests import LaunchRequest
from dflash_tui.ui.commands import actions
from dflash_tui.ui.host_tree import tree

from .cockpit import screen_text, sees, sees_no, types, until
from .scripted_hosts import SPECS, make_hosts_app, spec

FAR = Container(300, "far", "running", node="pve3")


@asynccontextmanager
async def hosts_screen(*specs: HostSpec, size: tuple[int, int] = (120, 40)) -> AsyncIterator[tuple[Pilot[None], Any]]:
    app = make_hosts_app(*specs)
    async with app.run_test(size=size, notifications=True) as pilot:
        await sees(pilot, "Runs 2")
        await pilot.press("3")
        await sees(pilot, f"Hosts {len(specs or SPECS)}", "reachable")
        yield pilot, app.seat


async def go_to(pilot: Pilot[None], name: str) -> None:
    """Move the cursor to the line of `name`, from the first line on."""
    await pilot.press("g")
    await until(pilot, lambda: any(name in line for line in screen_text(pilot.app).splitlines()), name)
    for _ in range(20):
        if any(line.startswith("▸") and name in line[:22] for line in screen_text(pilot.app).splitlines()):
            return
        await pilot.press("j")
    raise AssertionError(f"no line {name}\n{screen_text(pilot.app)}")


async def test_a_silent_host_has_its_sentence_and_since_when() -> None:
    async with hosts_screen() as (pilot, seat):
        await go_to(pilot, "dead")
        await sees(pilot, "no contact for 41 s: no answer from root@dead within 10 s")
        await go_to(pilot, "changed")
        await sees(pilot, "SHA256:n3wn3wn3w", "SHA256:0ld0ld0ld")
        seat.silent_hosts["gpu2"] = "no contact for 7 s, next try in 3 s: the link was lost"
        await go_to(pilot, "gpu2")
        await sees(pilot, "no contact for 7 s, next try in 3 s: the link was lost")


async def test_hostile_names_are_text_and_a_tree_says_what_hangs_where() -> None:
    async with hosts_screen() as (pilot, _):
        await sees(pilot, "├ ct200", "├ ct201", "├ 205 [b]evil\\x1b", "└ 300 far on pve2")
        text = screen_text(pilot.app)
        assert "\x1b" not in text
        assert text.index("local") < text.index("gpu2") < text.index("pve") < text.index("ct200")


async def test_a_check_says_what_it_found_and_what_it_could_not() -> None:
    async with hosts_screen() as (pilot, seat):
        await go_to(pilot, "gpu2")
        seat.gate.clear()
        await pilot.press("c")
        await sees(pilot, "◌ checking", "checking ... ")
        seat.gate.set()
        await sees(pilot, "✗ python", "no python3 there", "▲ clock", "/bin/[red]\\x1b[31m")
        seat.trouble = UnreachableError("gpu2: no answer within 10 s")
        await pilot.press("c")
        await sees(pilot, "✗ gpu2: no answer within 10 s")
        await sees_no(pilot, "no python3 there")
        assert [what for what in seat.said if what[0] == "check"] == [("check", "gpu2")] * 2


async def test_a_slow_host_delays_no_other_and_nobody_is_asked_behind_another_screen() -> None:
    app = make_hosts_app(spec("slow"), spec("quick"), HostSpec(kind="local", name="local"))
    seat, asked, gate = app.seat, [], asyncio.Event()
    look = seat.look

    async def slowly(host: HostSpec) -> Look:
        asked.append(host.name)
        if host.name == "slow":
            await gate.wait()
        return await look(host)

    seat.look = slowly  # type: ignore[method-assign]
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await sees(pilot, "Runs 2")
        assert asked == []
        await pilot.press("3")
        await sees(pilot, "● reachable 12 ms", "◌ looking")
        assert sorted(asked) == ["local", "quick", "slow"]
        await pilot.press("1")
        await sees(pilot, "Runs 2")
        gate.set()
        await pilot.press("3")
        await sees_no(pilot, "◌ looking")
        assert sorted(asked) == ["local", "quick", "slow"], "what is fresh is not asked for again"


async def test_one_key_launches_the_last_recipe_here() -> None:
    async with hosts_screen() as (pilot, seat):
        seat.last = LaunchRequest("paper", "gpu2", "again", ("lr=0.001",))
        seat.warnings = ["GPU 0 of ct200: 40.0 GiB of 80.0 GiB used by pid 4121"]
        await go_to(pilot, "ct200")
        await pilot.press("L")
        await sees(pilot, "again", "step 1/600", "GPU 0 of ct200: 40.0 GiB")
        assert ("launch", LaunchRequest("paper", "ct200", "again", ("lr=0.001",))) in seat.said


async def test_without_a_last_launch_the_form_opens_with_this_host_chosen() -> None:
    async with hosts_screen() as (pilot, _):
        await go_to(pilot, "ct200")
        await pilot.press("L")
        await sees(pilot, "New run", "nothing was launched from here yet")
        assert pilot.app.screen.query_one("#host", Select).value == "ct200"


async def test_the_form_has_local_first_and_says_what_is_wrong_with_a_host() -> None:
    async with hosts_screen() as (pilot, seat):
        seat.silent_hosts["dead"] = "no contact for 41 s, next try in 3 s: refused"
        await go_to(pilot, "dead")
        await pilot.press("n")
        await sees(pilot, "New run", "no contact for 41 s, next try in 3 s: refused")
        form = pilot.app.screen
        assert form.query_one("#host", Select).value == "dead"
        form.query_one("#host", Select).focus()
        await pilot.press("enter", "home", "enter")
        await until(pilot, lambda: form.query_one("#host", Select).value == "local", "local chosen, the first")
        await until(pilot, lambda: not form.query_one("#host-note").display, "nothing is wrong with this one")


async def test_a_node_and_a_container_that_is_no_host_launch_nothing() -> None:
    async with hosts_screen() as (pilot, seat):
        seat.last = LaunchRequest("paper", "gpu2")
        for name in ("pve", "205 [b]evil"):
            await go_to(pilot, name)
            assert "stop" not in [action.name for action in actions(pilot.app.screen)]
            await pilot.press("n", "L")
            await sees(pilot, "nothing runs there before it is a host")
            assert "New run" not in screen_text(pilot.app)
        assert not [what for what, _ in seat.said if what == "launch"]


async def test_every_key_of_the_screen_is_in_its_help() -> None:
    async with hosts_screen() as (pilot, _):
        known = actions(pilot.app.screen)
        assert {"check", "new here", "again here", "shell", "add", "copy", "commands"} <= {one.name for one in known}
        await pilot.press("question_mark")
        await sees(pilot, "Help")
        text = screen_text(pilot.app)
        assert [action.does for action in known if action.does not in text] == []


async def test_a_container_becomes_a_host_by_two_keys(home: Path) -> None:
    async with hosts_screen(size=(80, 24)) as (pilot, seat):
        await go_to(pilot, "205 [b]")
        await pilot.press("a")
        await sees(pilot, "Add a host")
        fields = {field.id: field.value for field in pilot.app.screen.query(Input)}
        assert (fields["address"], fields["vmid"], fields["name"]) == ("pve", "205", "b-evil-x1b-2J")
        await pilot.press("ctrl+s")
        await sees(pilot, "b-evil-x1b-2J was added", "Hosts 9")
        text = '[hosts.b-evil-x1b-2J]\nkind = "proxmox"\naddress = "pve"\nvmid = 205\n'
        assert ("add", text) in seat.said and ("check", "b-evil-x1b-2J") in seat.said


async def test_a_container_of_another_node_is_added_there(home: Path) -> None:
    async with hosts_screen() as (pilot, _):
        await go_to(pilot, "300 far on pve2")
        await sees(
            pilot, "container 300 on pve2, a node of the cluster of pve", "lives on the node pve2: a adds it there"
        )
        await pilot.press("s")
        await sees(pilot, "container 300 lives on the node pve2: a adds it there")
        await pilot.press("a")
        await sees(pilot, "Add a host")
        fields = {field.id: field.value for field in pilot.app.screen.query(Input)}
        assert (fields["address"], fields["vmid"], fields["name"]) == ("pve2", "300", "far")


def test_each_container_of_a_cluster_is_listed_once() -> None:
    """Where it lives, if that node is here; else under the first that tells of it."""
    hosts = {
        name: HostSpec(kind="proxmox", name=name, address=address, vmid=vmid)
        for name, address, vmid in (("a", "pve1", 100), ("b", "pve2", 200))
    }
    told = {
        "pve1": [Container(100, "a", "running"), Container(200, "b", "running", node="pve2"), FAR],
        "pve2": [Container(200, "b", "running"), Container(201, "c", "stopped"), Container(101, "d", "running"), FAR],
    }
    names = [line.name for line in tree(hosts, told)]
    assert names == ["pve1", "a", "300 far on pve3", "pve2", "b", "201 c", "101 d"]
    # One that is a host is not offered once more while its own node is silent.
    names = [line.name for line in tree(hosts, {"pve1": told["pve1"]})]
    assert names == ["pve1", "a", "300 far on pve3", "pve2", "b"]


async def test_a_host_that_cannot_be_reached_is_added_only_unseen(home: Path, ssh_config: Path) -> None:
    ssh_config.write_text("Host gpu7\n  User root\n")
    async with hosts_screen() as (pilot, seat):
        await pilot.press("a")
        await sees(pilot, "from ~/.ssh/config")
        await pilot.press("enter", "home", "enter")
        await until(pilot, lambda: pilot.app.screen.query_one("#name", Input).value == "gpu7", "the name taken over")
        seat.findings = [Finding("reach", "critical", "gpu7: no answer from root@gpu7 within 10 s")]
        await pilot.press("ctrl+s")
        await sees(pilot, "no answer from root@gpu7 within 10 s", "ctrl+o adds it unseen")
        assert not [what for what, _ in seat.said if what == "add"]
        await pilot.press("ctrl+o")
        await sees(pilot, "gpu7 was added", "Hosts 9")


@pytest.mark.parametrize(
    ("vmid", "words"), [("x[b]", "container 'x[b]' is no number"), ("3", ">= 100"), ("", "must be a name of")]
)
async def test_a_wrong_field_is_a_sentence(home: Path, ssh_config: Path, vmid: str, words: str) -> None:
    async with hosts_screen() as (pilot, seat):
        await pilot.press("a")
        await sees(pilot, "Add a host")
        pilot.app.screen.query_one("#address", Input).value = "gpu9" if vmid else "user@"
        pilot.app.screen.query_one("#vmid", Input).value = vmid
        pilot.app.screen.query_one("#name", Input).value = "gpu9"
        await pilot.press("ctrl+o")
        await sees(pilot, words)
        assert not [what for what, _ in seat.said if what == "add"]


async def test_the_command_log_is_empty_or_shows_what_ran_and_copies_it() -> None:
    async with hosts_screen() as (pilot, seat):
        seat.ran = []
        await pilot.press("tilde")
        await sees(pilot, "Nothing was run on a host yet.")
        await pilot.press("tilde")
        await sees_no(pilot, "Nothing was run")
        seat.ran, seat.collected_by = make_hosts_app().seat.ran, "PID 4711 (dflash-tui watch)"
        await pilot.press("tilde")
        await sees(pilot, "newest first", "✗ no answer", "● running", "'\\x1b[2J'")
        await sees(pilot, "Live runs are followed by PID 4711 (dflash-tui watch): what that runs")
        await pilot.press("j", "j", "j", "y")
        await sees(pilot, "copied the command")
        await types(pilot, "~")


async def test_what_a_check_found_is_scrolled_where_it_is_long() -> None:
    async with hosts_screen(size=(80, 24)) as (pilot, seat):
        seat.findings = [Finding(f"part{number}", "ok", "as it should be") for number in range(40)]
        await go_to(pilot, "gpu2")
        await pilot.press("c")
        await sees(pilot, "✓ part0")
        await pilot.press("tab", "end")
        await sees(pilot, "✓ part39")
        await pilot.press("tab", "j")
        await sees(pilot, "▸ dead")


async def test_a_check_that_finds_a_node_lists_its_containers() -> None:
    async with hosts_screen(spec("pve"), HostSpec(kind="local", name="local")) as (pilot, seat):
        seat.findings = [Finding("pct", "info", "this is a Proxmox node")]
        await go_to(pilot, "pve")
        await pilot.press("c")
        await sees(pilot, "├ 200 train200", "├ 201 train201")
        await go_to(pilot, "201 train")
        await pilot.press("a")
        await sees(pilot, "Add a host", "train201", "▐ ▌ pct by sudo")
        pilot.app.screen.query_one("#sudo").focus()
        await pilot.press("space")
        await sees(pilot, "▐X▌ pct by sudo")


async def test_what_is_known_of_a_host_can_be_copied() -> None:
    async with hosts_screen() as (pilot, _):
        await go_to(pilot, "gpu2")
        await pilot.press("y")
        await sees(pilot, "copied what is known of gpu2")

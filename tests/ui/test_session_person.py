"""Questions that only a person can answer: by dialogs, one at a time, each once, never answered by accident."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from textual.pilot import Pilot
from textual.widgets import Input

from dflash_tui.hosts.person import HostKey, leaving_alone, present
from dflash_tui.ui.person import SessionPerson

from .cockpit import cockpit, screen_text, sees, sees_no, types
from .scripted_seat import make_run

KEY = HostKey("root@gpu\x1b[2J", "ssh-ed25519", "SHA256:abc")
OTHER = HostKey("root@gpu9", "ssh-ed25519", "SHA256:xyz")


@asynccontextmanager
async def session() -> AsyncIterator[tuple[Pilot[None], SessionPerson]]:
    async with cockpit([make_run("v5-hard")]) as (pilot, seat):
        assert present() is seat.person
        yield pilot, seat.person


async def test_a_key_is_asked_for_once_and_only_a_whole_yes_is_one() -> None:
    async with session() as (pilot, person):
        asking = [asyncio.create_task(person.trusts(KEY)) for _ in range(2)]
        await sees(pilot, "The host key of root@gpu\\x1b[2J is not known yet", "SHA256:abc")
        await types(pilot, "y")
        await pilot.press("enter")
        await sees(pilot, "Type the whole word yes")
        assert not any(task.done() for task in asking)
        await types(pilot, "es")
        await pilot.press("enter")
        assert await asyncio.gather(*asking) == [True, True]
        await sees_no(pilot, "not known yet")
        assert await person.trusts(KEY)


async def test_a_no_holds_until_something_is_done_by_hand() -> None:
    async with session() as (pilot, person):
        asking = asyncio.create_task(person.trusts(OTHER))
        await sees(pilot, "root@gpu9")
        await pilot.press("escape")
        assert await asking is False
        assert await person.trusts(OTHER) is False
        person.reconsider()
        asking = asyncio.create_task(person.trusts(OTHER))
        await sees(pilot, "SHA256:xyz")
        await types(pilot, "no")
        await pilot.press("enter")
        assert await asking is False


async def test_a_passphrase_is_not_shown_and_a_wrong_one_is_asked_for_again() -> None:
    async with session() as (pilot, person):
        asking = asyncio.create_task(person.passphrase("/keys/[b]a", is_repeated=False))
        await sees(pilot, "Passphrase of /keys/[b]a")
        await types(pilot, "ein Wort")
        assert pilot.app.screen.query_one(Input).value == "ein Wort"
        assert "ein Wort" not in screen_text(pilot.app)
        await pilot.press("enter")
        assert await asking == "ein Wort"
        asking = asyncio.create_task(person.passphrase("/keys/[b]a", is_repeated=True))
        await sees(pilot, "That does not open it.")
        await pilot.press("escape")
        assert await asking is None
        assert await person.passphrase("/keys/[b]a", is_repeated=False) is None, "a no is remembered"


async def test_a_question_that_nobody_waits_for_any_more_goes_away() -> None:
    async with session() as (pilot, person):
        asking = asyncio.create_task(person.trusts(KEY))
        await sees(pilot, "not known yet")
        await pilot.press("ctrl+p")
        asking.cancel()
        await asyncio.wait({asking})
        await pilot.press("escape")
        await sees_no(pilot, "not known yet")
        assert asking.cancelled()


async def test_a_session_that_ends_answers_nothing() -> None:
    async with session() as (pilot, person):
        asking = asyncio.create_task(person.trusts(KEY))
        await sees(pilot, "not known yet")
        await pilot.press("ctrl+q")
    assert await asking is False


async def test_who_is_left_alone_is_not_asked() -> None:
    async with session() as (_, person):
        with leaving_alone():
            assert present() is None
            assert await asyncio.create_task(_present()) is None
        assert present() is person


async def _present() -> object:
    return present()

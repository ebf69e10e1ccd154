"""The questions that only a person can answer: is this the machine's key, what opens this private key. Esc is a no."""

from typing import ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from dflash_tui.hosts.person import HostKey
from dflash_tui.text import visible
from dflash_tui.ui.dialog import Dialog

T = TypeVar("T")


class QuestionScreen(Dialog[T | None], Generic[T]):
    """Dismissed with the answer, with None for none."""

    _is_withdrawn = False

    def withdraw(self) -> None:
        """Nobody wants to know any more; under another dialog it goes when that one has gone."""
        self._is_withdrawn = not self.is_active
        if self.is_active:
            self.dismiss(None)

    def on_screen_resume(self) -> None:
        if self._is_withdrawn:
            self._is_withdrawn = False
            self.dismiss(None)


class HostKeyScreen(QuestionScreen[bool]):
    """A whole word is asked for: a key press that was meant for the screen below must not vouch for a machine."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(False)", "no", tooltip="Do not connect."),
    ]

    def __init__(self, key: HostKey) -> None:
        super().__init__()
        self._key = key

    def compose(self) -> ComposeResult:
        key = self._key
        with Vertical(classes="dialog"):
            yield Static(Content(f"The host key of {visible(key.where)} is not known yet"), classes="dialog-title")
            yield Static(Content(f"{visible(key.kind)}\n{visible(key.fingerprint)}"), classes="fingerprint")
            yield Static(
                "Is that the one it has, by what you know of it? `ssh-keygen -lf` of its public host key shows it"
                " there. A yes is remembered. Nothing was sent yet."
            )
            yield Input(placeholder="type yes", compact=True)
            yield Static(classes="hint")
            yield Static("enter yes   esc do not connect", classes="dialog-keys")

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        if event.value.strip().lower() in ("yes", "no"):
            self.dismiss(event.value.strip().lower() == "yes")
        else:
            self.query_one(".hint", Static).update("Type the whole word yes, or Esc.")


class PassphraseScreen(QuestionScreen[str]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "without", tooltip="Go on without this key."),
    ]

    def __init__(self, key_file: str, *, is_repeated: bool) -> None:
        super().__init__()
        self._key_file, self._is_repeated = key_file, is_repeated

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Content(f"Passphrase of {visible(self._key_file)}"), classes="dialog-title")
            if self._is_repeated:
                yield Static("That does not open it.", classes="error")
            yield Input(password=True, compact=True)
            yield Static("It stays in this session's memory: the key is asked for once.", classes="hint")
            yield Static("enter open the key   esc go on without it", classes="dialog-keys")

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        self.dismiss(event.value or None)

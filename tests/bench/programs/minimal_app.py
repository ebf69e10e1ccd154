"""The least that a Textual app can be: one widget with one word."""

from textual.app import App, ComposeResult
from textual.widgets import Static


class MinimalApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Static("Hello")


MinimalApp().run()

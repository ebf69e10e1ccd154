"""Our themes and the colours of chart roles in them; any other theme of textual gets chart colours made from its own.

The only place of colour literals. Which role means what stands in `charts.canvas.Role`.
"""

from pathlib import Path

from textual.theme import Theme

from dflash_tui import paths


def _charts(
    data: str, second: str, third: str, band: str, quiet: str, faint: str, good: str, bad: str
) -> dict[str, str]:
    """Variables `chart-<role>` of a theme; `band` is a background, the others are inks."""
    return {
        "chart-data": data,
        "chart-second": second,
        "chart-third": third,
        "chart-band": band,
        "chart-axis": quiet,
        "chart-grid": faint,
        "chart-label": quiet,
        "chart-muted": quiet,
        "chart-good": good,
        "chart-bad": bad,
    }


THEMES = (
    Theme(
        name="dflash-dark",
        primary="#4c9df3",
        secondary="#4cc2b0",
        accent="#ffab40",
        success="#57c27c",
        warning="#e5b567",
        error="#f0707a",
        variables=_charts("#4c9df3", "#4cc2b0", "#b794e8", "#16314e", "#8b93a1", "#3a414c", "#57c27c", "#f0707a"),
        foreground="#e3e6eb",
        background="#0f1115",
        surface="#161a20",
        panel="#1e232b",
    ),
    Theme(
        name="dflash-light",
        dark=False,
        primary="#0b5cbd",
        secondary="#00776a",
        accent="#b25000",
        success="#17753a",
        warning="#855300",
        error="#bb2233",
        foreground="#1c2026",
        background="#fbfbfc",
        surface="#f1f2f5",
        panel="#e5e8ed",
        variables=_charts("#0b5cbd", "#00776a", "#7a3fb8", "#cfe2f8", "#5d6673", "#c3c9d2", "#17753a", "#bb2233"),
    ),
    # The Okabe-Ito colours: told apart by the three common kinds of colour blindness.
    Theme(
        name="dflash-colour-blind",
        primary="#56b4e9",
        secondary="#e69f00",
        accent="#f0e442",
        success="#56b4e9",
        warning="#e69f00",
        error="#ff7f2a",
        variables=_charts("#56b4e9", "#e69f00", "#cc79a7", "#173a50", "#98a0ad", "#3a414c", "#56b4e9", "#ff7f2a"),
        foreground="#e3e6eb",
        background="#0f1115",
        surface="#161a20",
        panel="#1e232b",
    ),
)
DEFAULT = "dflash-dark"
# What `t` offers: ours, and textual's two that keep the terminal's own sixteen colours and its background.
CHOICES = {
    "dflash-dark": "dark",
    "dflash-light": "light",
    "dflash-colour-blind": "colour-blind safe (dark)",
    "ansi-dark": "the terminal's own colours, dark",
    "ansi-light": "the terminal's own colours, light",
}


def chart_defaults(theme: Theme) -> dict[str, str]:
    """Chart colours for a theme that brings none."""
    quiet = "ansi_bright_black" if theme.ansi else theme.foreground or theme.primary
    return _charts(
        theme.primary,
        theme.secondary or theme.primary,
        theme.accent or theme.primary,
        "transparent" if theme.ansi else theme.panel or theme.surface or "transparent",
        quiet,
        quiet,
        theme.success or theme.primary,
        theme.error or theme.primary,
    )


def remembered() -> str:
    """The theme chosen last on this machine."""
    try:
        name = _file().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return DEFAULT
    return name if name in CHOICES else DEFAULT


def remember(name: str) -> None:
    """Keep the choice for the next session. Raises OSError."""
    paths.private_dir(paths.data_dir())
    _file().write_text(name + "\n", encoding="utf-8")


def _file() -> Path:
    return paths.data_dir() / "theme"

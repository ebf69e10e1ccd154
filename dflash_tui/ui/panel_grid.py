"""The grid of panels: which there are, which are in sight, which one fills it. How many fit is the stylesheet's."""

import asyncio
from collections.abc import Collection, Sequence

from textual.containers import VerticalScroll
from textual.geometry import Region

from dflash_tui.store.base import PanelResult
from dflash_tui.ui import findings
from dflash_tui.ui.findings_panel import FindingsPanel
from dflash_tui.ui.panel import Panel, Sight

# Before the first layout there is no width to derive it from.
FIRST_BUCKETS = 240
ZOOMED = "-zoomed"


class PanelGrid(VerticalScroll, can_focus=False, inherit_bindings=False):
    """Panels in their own order. Zooming hides all but one."""

    @property
    def panels(self) -> list[Panel]:
        return list(self.query(Panel))

    @property
    def zoomed(self) -> Panel | None:
        return next((panel for panel in self.panels if panel.has_class(ZOOMED)), None)

    @property
    def focused(self) -> Panel | None:
        return next((panel for panel in self.panels if panel.has_focus), None)

    @property
    def buckets(self) -> int:
        """Two dots for each column of the widest panel in sight."""
        widths = [panel.size.width for panel in self._in_sight() if panel.size.width]
        return 2 * max(widths) if widths else FIRST_BUCKETS

    def names_in_sight(self) -> list[str] | None:
        """The panels worth asking now; None when there are none yet: all of them."""
        return [panel.name for panel in self._in_sight() if panel.name and panel.is_asked] or None

    @property
    def steps(self) -> list[float]:
        """The steps that a cursor goes along: those of the panel in focus, else of the first in sight that has any."""
        candidates = (panel for panel in (self.zoomed, self.focused, *self._in_sight()) if panel)
        return next((steps for panel in candidates if (steps := panel.steps)), [])

    def look(self, sight: Sight) -> None:
        """Draw the same answers with another cursor, other limits."""
        for panel in self.panels:
            panel.look(sight)

    async def show(
        self, results: Sequence[PanelResult], sight: Sight, first: Sequence[str], *, has_gone_on: bool
    ) -> None:
        """Show these answers; panels not among them stay as they are, or are of the past if the run `has_gone_on`.

        New panels come into the grid: those named in `first` in that order, then the others in their own.
        """
        known = {panel.name: panel for panel in self.panels}
        names = [result.name for result in sorted(results, key=lambda result: result.order)]
        names.sort(key=lambda name: first.index(name) if name in first else len(first))
        new = [FindingsPanel(name) if name == findings.NAME else Panel(name) for name in names if name not in known]
        if new:
            await self.mount_all(new)
            places = {name: place for place, name in enumerate(names)}
            self.sort_children(key=lambda panel: places.get(str(panel.name), len(places)))
            known |= {panel.name: panel for panel in new}
            if self.screen.focused is None:
                self.focus_on(self.panels[0])
        for panel in known.values() if has_gone_on else ():
            panel.outdate()
        for result in results:
            known[result.name].show(result, sight)
        for panel in self._in_sight():
            # One panel a turn of the loop, so that a key waits for one and not for all of them.
            panel.drawn()
            await asyncio.sleep(0)

    async def clear(self) -> None:
        self.remove_class(ZOOMED)
        await self.query(Panel).remove()

    async def keep(self, names: Collection[str]) -> None:
        """Only panels of these names stay."""
        gone = [panel for panel in self.panels if panel.name not in names]
        if self.zoomed in gone:
            self.zoom(None)
        await self.remove_children(gone)

    def zoom(self, panel: Panel | None) -> None:
        """Give the whole grid to one panel; None: back to all."""
        for other in self.panels:
            other.set_class(other is panel, ZOOMED)
        self.set_class(panel is not None, ZOOMED)
        if (focus := panel or self.focused) is not None:
            self.call_after_refresh(self.focus_on, focus)

    def step(self, by: int) -> None:
        """Focus the next panel (or one before), and zoom it if one is zoomed."""
        panels = self.panels
        if not panels:
            return
        here = self.zoomed or self.focused
        there = panels[(panels.index(here) + by) % len(panels)] if here else panels[0]
        if self.zoomed:
            self.zoom(there)
        else:
            self.focus_on(there)

    def focus_named(self, name: str) -> None:
        """Focus the panel of this name, if there is one; zoom it if another one is."""
        if (panel := next((panel for panel in self.panels if panel.name == name), None)) is not None:
            (self.zoom if self.zoomed else self.focus_on)(panel)

    def focus_on(self, panel: Panel) -> None:
        """Focus a panel, and bring its whole row into sight with as little scrolling as that takes."""
        panel.focus(scroll_visible=False)
        place, page, top = panel.virtual_region, self.scrollable_content_region.height, self.scroll_offset.y
        if place.y < top:
            self.scroll_to(y=place.y, animate=False, force=True)
        elif place.bottom > top + page:
            rows_above = max(0, page // max(1, place.height) - 1)
            self.scroll_to(y=place.y - rows_above * place.height, animate=False, force=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        # Behind a focus that is on its way: a panel is also scrolled to because it is given that.
        self.app.call_later(self._follow)

    def _follow(self) -> None:
        """Keys act on the panel in focus: when that was scrolled out of sight, on one in sight, of its column."""
        here = self.focused
        if here is None or self.zoomed or self._share_in_sight(here) > 0.5:
            return
        column = here.virtual_region.x
        in_sight = self._in_sight()
        if in_sight:
            best = max(in_sight, key=lambda panel: (self._share_in_sight(panel), panel.virtual_region.x == column))
            best.focus(scroll_visible=False)

    def _share_in_sight(self, panel: Panel) -> float:
        place = panel.virtual_region
        return place.intersection(self._view).height / max(1, place.height)

    @property
    def _view(self) -> Region:
        return self.scrollable_content_region.size.region + self.scroll_offset

    def _in_sight(self) -> list[Panel]:
        return [panel for panel in self.panels if panel.display and panel.virtual_region.overlaps(self._view)]

"""Shows a run on a terminal as it happens, and asks the user."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from typing import TextIO, cast

from handrail.cli.ask import TerminalHandler, asking_terminal
from handrail.cli.display import Display
from handrail.cli.permission_flags import warn
from handrail.records import record
from handrail.tools.call_report import call_report
from handrail.tools.drafts import draft_card
from handrail.tools.pool import Pool
from handrail.tui.question import Dialog, Keyboard
from handrail.tui.run_view import RunView
from handrail.tui.screen import Screen


@record
class TerminalRun:
    """The view of a run on a terminal, and who answers questions about its calls."""

    display: Display
    view: RunView | None = None
    handler: TerminalHandler | None = None

    def show_drafts(self, pool: Callable[[], Pool]) -> None:
        """Draw calls while the model writes them, now that their tools are known."""
        if self.view is not None:
            self.view.draw_draft = lambda name, arrived: draft_card(pool(), name, arrived)


@contextmanager
def open_terminal(chosen: argparse.Namespace, display: Display) -> Iterator[TerminalRun]:
    """Draw on the terminal of this process. Meanwhile warnings go through the screen too."""
    terminal = asking_terminal(chosen.ask, warn) if display.may_ask else None
    screen = Screen(sys.stderr, sys.stdout if display.streams else None)
    view = None
    if display.streams or display.shows_calls:
        details = call_report if chosen.verbose else None
        view = RunView(screen, shows_calls=display.shows_calls, details=details)
    with redirect_stderr(cast("TextIO", screen)):
        try:
            yield TerminalRun(display, view, None if terminal is None else TerminalHandler(_dialog(screen, terminal)))
        finally:
            if view is not None:
                view.close()


def _dialog(screen: Screen, terminal: int) -> Dialog:
    """The dialog on a terminal; where standard error goes elsewhere, on a screen of its own."""
    if not screen.isatty():
        screen = Screen(os.fdopen(os.dup(terminal), "w", errors="replace"), None)
    return Dialog(screen, Keyboard(terminal))

"""Decides what of a run is shown while it runs."""

import argparse
import os

from handrail.records import record


@record
class Display:
    """Whether the answer is streamed, whether calls are shown as they happen, and whether a person may be asked."""

    streams: bool = False
    shows_calls: bool = False
    may_ask: bool = False

    @property
    def needs_terminal(self) -> bool:
        """Whether there is anything to draw or to ask."""
        return self.streams or self.shows_calls or self.may_ask


NO_DISPLAY = Display()


def display_for(chosen: argparse.Namespace) -> Display:
    """What is shown by these flags on the streams of this process: a pipe gets nothing but the result."""
    prints_events = chosen.debug and not chosen.debug_file  # --debug shows every event itself
    is_live = not chosen.quiet and not prints_events and chosen.output_format != "stream-json"
    return Display(
        streams=is_live and chosen.output_format == "text" and os.isatty(1),
        shows_calls=is_live and os.isatty(2),
        may_ask=os.isatty(0) and os.isatty(2) if chosen.ask is None else chosen.ask,
    )


def folder_warning(cwd: str, home: str) -> str:
    """What to say about a working folder that holds much more than a project; empty for others."""
    if cwd not in ("/", home):
        return ""
    what, files = ("/", "every file of this machine") if cwd == "/" else ("your home folder", "every file of yours")
    return f"the agent works in {what}, so {files} counts as part of the project. Start it in a project's folder."

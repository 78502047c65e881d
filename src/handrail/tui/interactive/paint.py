"""Colours of the conversation: themes, and text painted in their roles."""

import os
import re
from collections.abc import Mapping

from handrail.records import record


@record
class Theme:
    """The colours of each role, as parameters of the escape sequence that sets them. Empty = none."""

    name: str
    accent: str = "36"
    dim: str = "2"
    strong: str = "1"
    good: str = "32"
    warning: str = "33"
    bad: str = "31"
    added: str = "32"
    removed: str = "31"
    changed_word: str = "7"
    selected: str = "1;36"
    code: str = "ansi_dark"
    """The colours of highlighted code; empty = none."""

    @property
    def has_colour(self) -> bool:
        """Whether anything is painted at all."""
        return bool(self.code)


THEMES = {
    theme.name: theme
    for theme in (
        Theme("dark"),
        Theme("light", accent="34", warning="35", selected="1;34", code="ansi_light"),
        # blue and yellow stay apart for people who see red and green alike
        Theme("colour-blind", accent="36", good="34", bad="33", warning="1;33", added="34", removed="33"),
        Theme("none", "", "", "", "", "", "", "", "", "", "", ""),
    )
}
NONE = THEMES["none"]
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""What sets a colour in painted text."""


def theme_for(name: str, env: Mapping[str, str] = os.environ) -> Theme:
    """The theme of this name; without one, by what the terminal says of its background."""
    if env.get("NO_COLOR") or env.get("TERM", "dumb") == "dumb":
        return NONE
    if name in THEMES:
        return THEMES[name]
    background = env.get("COLORFGBG", "").rpartition(";")[2]
    return THEMES["light" if background in ("7", "15") else "dark"]


def paint(text: str, colour: str) -> str:
    """The text in a colour."""
    return f"\x1b[{colour}m{text}\x1b[0m" if colour and text else text

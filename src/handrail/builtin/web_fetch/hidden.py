"""What a person would not see on a page, and a model should not read: hidden elements and characters."""

import re
from collections.abc import Mapping

from handrail.lazy import lazy_pattern

NOT_TEXT = frozenset(
    (
        "script", "style", "noscript", "template", "head", "iframe", "object", "embed", "canvas", "svg", "math",
        "video", "audio", "map", "select", "input", "textarea", "button", "dialog", "datalist", "noembed", "noframes",
    )
)  # fmt: skip
AROUND = frozenset(("nav", "footer", "aside", "form"))
"""Elements beside the main text."""
HIDDEN_CLASSES = frozenset(("sr-only", "visually-hidden", "visuallyhidden", "screen-reader-text", "d-none"))
HIDING = lazy_pattern(
    r"(?:^|;)(?:display:none|visibility:(?:hidden|collapse)|opacity:0*(?:\.0*)?(?:%|;|$|!)|font-size:0*(?:\.0*)?(?:px|pt|em|rem|%|;|$|!)"
    r"|(?:left|top|right|bottom|margin-left|margin-top|text-indent):-\d{3,}|clip-path:inset\((?:50|100)%"
    r"|clip:rect\(0|(?:max-)?(?:height|width):0*(?:px|;|$|!)|transform:scale\(0\)|color:transparent)"
)
# Characters that show nothing: tags (which can spell out whole sentences), marks of direction, joiners of words.
INVISIBLE = lazy_pattern(
    "[\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
CONTROLS = lazy_pattern(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def is_hidden(attributes: Mapping[str, str]) -> bool:
    """Whether an element with these attributes is not shown."""
    if "hidden" in attributes or attributes.get("aria-hidden", "").strip().lower() == "true":
        return True
    if not HIDDEN_CLASSES.isdisjoint(attributes.get("class", "").split()):
        return True
    return "style" in attributes and is_hiding(attributes["style"])


def is_hiding(style: str) -> bool:
    """Whether a style makes its element invisible: not shown, without size or colour, or outside of the page."""
    plain = re.sub(r"/\*.*?(?:\*/|\Z)|\s+", "", style, flags=re.DOTALL).lower()
    return HIDING.search(plain) is not None


def visible(text: str) -> str:
    """The text without characters that cannot be seen."""
    return CONTROLS.sub("", INVISIBLE.sub("", text.replace("\r\n", "\n")))

"""Cards: data that says how a call is shown to a person. Front ends draw them and know nothing of the tools."""

from typing import Literal, TypeAlias

from handrail.conversation.plain import plain
from handrail.records import record

Tone: TypeAlias = Literal["plain", "good", "warning", "bad"]
BodyKind: TypeAlias = Literal["text", "code", "diff", "markdown"]


@record
class Card:
    """
    A title line, a detail beside it, and perhaps a body that may be folded.

    Whatever it is made from (names of files, commands, what a program said): nothing in it steers a terminal, and
    title and detail are one line each.
    """

    title: str
    detail: str = ""
    body: str = ""
    body_kind: BodyKind = "text"
    tone: Tone = "plain"

    def __post_init__(self) -> None:
        for name in ("title", "detail"):
            text = getattr(self, name)
            if not text.isprintable():
                object.__setattr__(self, name, plain(text).replace("\n", "\\n").replace("\t", " "))
        object.__setattr__(self, "body", plain(self.body))

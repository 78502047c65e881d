"""Cards: data that says how a call is shown to a person. Front ends draw them and know nothing of the tools."""

from typing import Literal, TypeAlias

from handrail.conversation.plain import plain
from handrail.records import record

Tone: TypeAlias = Literal["plain", "good", "warning", "bad"]
BodyKind: TypeAlias = Literal["text", "code", "diff", "markdown"]


@record
class Card:
    """
    A title line, a detail and a short tag beside it, and perhaps a body that may be folded.

    Whatever it is made from (names of files, commands, what a program said): nothing in it steers a terminal, and
    title, detail and tag are one line each.
    """

    title: str
    detail: str = ""
    body: str = ""
    body_kind: BodyKind = "text"
    tone: Tone = "plain"
    tag: str = ""

    def __post_init__(self) -> None:
        for name in ("title", "detail", "tag"):
            text = getattr(self, name)
            if not text.isprintable():
                object.__setattr__(self, name, plain(text).replace("\n", "\\n").replace("\t", " "))
        object.__setattr__(self, "body", plain(self.body))

    @property
    def line(self) -> str:
        """The card in one line, without its body."""
        return " ".join(filter(None, (self.title, self.detail, self.tag and f"[{self.tag}]")))

    def lines(self, body: int) -> list[str]:
        """The card as text: its line, then at most so many lines of its body and how many more there are."""
        inside = self.body.strip("\n").split("\n") if self.body.strip() else []
        kept = [f"  {line}".rstrip() for line in inside[:body]]
        more = len(inside) - len(kept)
        return [self.line, *kept, *([f"  (+{more} more line{'s' if more > 1 else ''})"] if more else [])]

"""Cards: data that says how a call is shown to a person. Front ends draw them and know nothing of the tools."""

from typing import Literal, TypeAlias

from handrail.records import record

Tone: TypeAlias = Literal["plain", "good", "warning", "bad"]
BodyKind: TypeAlias = Literal["text", "code", "diff", "markdown"]


@record
class Card:
    """A title line, a detail beside it, and perhaps a body that may be folded."""

    title: str
    detail: str = ""
    body: str = ""
    body_kind: BodyKind = "text"
    tone: Tone = "plain"

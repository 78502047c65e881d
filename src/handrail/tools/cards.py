"""Cards: data that says how a call is shown to a person. Front ends draw them and know nothing of the tools."""

from collections.abc import Sequence
from typing import Generic, Literal, TypeAlias, TypeVar

from handrail.conversation.blocks import Json
from handrail.conversation.plain import plain
from handrail.records import record
from handrail.tools.context import Progress, ToolContext
from handrail.tools.wording import cut

In = TypeVar("In")

Tone: TypeAlias = Literal["plain", "good", "warning", "bad"]
BodyKind: TypeAlias = Literal["text", "code", "diff", "markdown"]


@record
class Card:
    """
    A title with a detail and a short tag on one line, and an optional body that may be folded.

    Control characters in the given texts (file names, commands, output of programs) are made visible, so a card cannot
    steer a terminal.
    """

    title: str
    detail: str = ""
    body: str = ""
    body_kind: BodyKind = "text"
    tone: Tone = "plain"
    tag: str = ""

    def __post_init__(self) -> None:
        if not (self.title.isprintable() and self.detail.isprintable() and self.tag.isprintable()):
            for name in ("title", "detail", "tag"):
                object.__setattr__(self, name, plain(getattr(self, name)).replace("\n", "\\n").replace("\t", " "))
        if self.body:
            object.__setattr__(self, "body", plain(self.body))

    @property
    def line(self) -> str:
        """The card in one line, without its body."""
        return " ".join(filter(None, (self.title, self.detail, self.tag and f"[{self.tag}]")))

    def lines(self, body: int) -> list[str]:
        """The card as text: its line, at most `body` lines of its body, and how many more there are."""
        inside = self.body.strip("\n").split("\n") if self.body.strip() else []
        kept = [f"  {line}".rstrip() for line in inside[:body]]
        more = len(inside) - len(kept)
        return [self.line, *kept, *([f"  (+{more} more line{'s' if more > 1 else ''})"] if more else [])]


@record
class FormChoice:
    """An answer that is offered; `preview` is text to compare answers by."""

    label: str
    description: str = ""
    preview: str = ""


@record
class FormField:
    """A question to the person. Another answer than the choices can always be typed."""

    question: str
    header: str = ""
    choices: tuple[FormChoice, ...] = ()
    several: bool = False


class ToolDisplay(Generic[In]):
    """How a tool shows its calls. Every card has a default."""

    name: str

    def display_name(self, args: In | None = None) -> str:
        """The name that people see."""
        return self.name

    def use_card(self, partial: Json) -> Card:
        """The call, drawn from as much of its input as has arrived."""
        first = next((value for value in partial.values() if isinstance(value, str)), "")
        return Card(title=self.display_name(), detail=cut(first.partition("\n")[0], 200))

    def progress_card(self, progress: Sequence[Progress]) -> Card:
        """The running call: by default its latest progress."""
        if not progress:
            return Card(title=self.display_name())
        latest = progress[-1]
        done = "" if latest.fraction is None else f"{latest.fraction:.0%}"
        return Card(title=self.display_name(), detail=" ".join(filter(None, (latest.message, done))))

    def rejected_card(self, partial: Json, reason: str) -> Card:
        """The call that was not allowed."""
        return Card(title=self.display_name(), detail="refused", body=reason, tone="warning")

    def error_card(self, message: str) -> Card:
        """The call that failed."""
        return Card(title=self.display_name(), detail="failed", body=message, tone="bad")

    def group_card(self, inputs: Sequence[Json]) -> Card | None:
        """Several calls of this tool drawn as one. None = draw each by itself."""
        return None

    def form(self, args: In) -> tuple[FormField, ...]:
        """The questions that the person answers in place of a yes; the answers come back as the input `answers`."""
        return ()

    def document(self, args: In) -> Card | None:
        """What the person reads before the answer, such as a plan."""
        return None

    def change_preview(self, args: In, ctx: ToolContext) -> str:
        """What the call would change in a file, as a unified diff, for the question about it. Empty = not known."""
        return ""

    def tag(self, args: In) -> str:
        """A word shown beside the name, for example a time limit. Empty = none."""
        return ""

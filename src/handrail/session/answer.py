"""What comes of a prompt: an answer, or an error that says why there is none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from handrail.conversation.logger import get_logger
from handrail.errors import RunError
from handrail.lazy import lazy
from handrail.loop.events import Denial, RunEnded
from handrail.loop.state import WHAT_HAPPENED, Move
from handrail.loop.usage import ModelUsage
from handrail.tools.permission import rules_and_mode

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from handrail.loop import notebook

    Structured = TypeVar("Structured", default=Any)
else:
    from typing import TypeVar

    notebook = lazy("handrail.loop.notebook")
    Structured = TypeVar("Structured")

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Answer(Generic[Structured]):
    """
    What came of a prompt; printed, it is its text.

    `structured` fits the agent's `output`; `dollars` is None when the price is not known.
    """

    text: str
    structured: Structured
    dollars: float | None
    turns: int
    ended: RunEnded

    @property
    def spent(self) -> Mapping[str, ModelUsage]:
        """Tokens by model."""
        return self.ended.spent

    @property
    def denials(self) -> tuple[Denial, ...]:
        """The calls that were refused, each with the reason."""
        return self.ended.denials

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return notebook.ended_html(self.ended)


def answer_of(ended: RunEnded) -> Answer[Any]:
    """The answer that a run ended with; RunError if it ended without one."""
    if ended.move is Move.STOPPED:
        return Answer(ended.text, ended.structured, ended.dollars, ended.turns, ended)
    details = [ended.problem]
    if ended.failure:
        details.append(ended.failure.report)
    why = ": ".join([WHAT_HAPPENED[ended.why], *filter(None, details)])
    raise RunError(
        f"The prompt was not answered, because {why.rstrip('.')}. The conversation can go on from here.", ended
    )


def log_unasked(ended: RunEnded) -> None:
    """Tell a program that has no one to ask which calls were refused for it, and how it can allow them."""
    for denial in ended.denials:
        if denial.unasked:
            log.warning("%s was refused: %s. %s", denial.use.name, denial.reason, _way_to_allow(denial))


def _way_to_allow(denial: Denial) -> str:
    rules, mode = rules_and_mode(denial.remedy)
    arguments = [f"allow={rules!r}"] if rules else []
    arguments += [f"mode={mode!r}"] if mode else []
    if arguments:
        return f"To allow it, write Agent({', '.join(arguments)}), or answer with can_use_tool."
    return "Answer such questions with can_use_tool."

"""StructuredOutput: the tool that takes the answer as data, for servers that have no format of their own for it."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from handrail.conversation.blocks import Json
from handrail.loop.progress import DATA_TOOL
from handrail.loop.structured import JsonAnswer
from handrail.providers.client import Provider
from handrail.session.models.choose import ChosenModel, SessionModel
from handrail.tools.access import Access
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.raw import RawTool
from handrail.tools.tool import PromptView

PROMPT = (
    "Gives your final answer as data. The user needs the answer in this form: when the work is done, call this tool "
    "once, with the whole answer as its input. Do not write the answer as text as well."
)


class StructuredOutputTool(RawTool):
    """Offered while the model's server has no native format for schemas; the loop takes the answer from its result."""

    always_load = True

    def __init__(self, answer: JsonAnswer, is_native: Callable[[], bool]) -> None:
        super().__init__(DATA_TOOL, answer.tool_schema)
        self._answer = answer
        self._is_native = is_native

    def prompt(self, view: PromptView) -> str:
        return PROMPT

    def is_enabled(self) -> bool:
        return not self._is_native()

    def is_read_only(self, args: Json) -> bool:
        return True

    def access(self, args: Json, run: RunContext) -> Access:
        return Access.bookkeeping()

    async def call(self, args: Json, ctx: ToolContext) -> Output:
        return Output(text="The answer was recorded.", data=self._answer.unwrap(args))


def open_structured(output: Json | type[BaseModel], model: SessionModel) -> tuple[JsonAnswer, StructuredOutputTool]:
    """What checks the answer, and the tool that takes it; HandrailError if the schema cannot be used."""
    answer = JsonAnswer(output)
    return answer, StructuredOutputTool(answer, lambda: has_native_format(model.chosen))


def has_native_format(chosen: ChosenModel) -> bool:
    """Whether the model's server is known to take a JSON Schema for its answer."""
    model: Any = chosen.model
    return isinstance(model, Provider) and model.takes_schema(chosen.name)

"""AskUserQuestion: put up to four questions with ready answers to the person."""

from typing import Annotated

from pydantic import Field, model_validator

from handrail.conversation.blocks import ToolUse
from handrail.tools.access import Access
from handrail.tools.cards import Card, FormChoice, FormField
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.permission import NO_OPINION, Check
from handrail.tools.schema import Input
from handrail.tools.tool import Tool

MAX_HEADER = 12


class AnswerOption(Input):
    label: str = Field(description="The answer in a few words.")
    description: str = Field(default="", description="What choosing it means.")
    preview: str | None = Field(default=None, description="Text to compare answers by, such as code or a sketch.")


class PersonQuestion(Input):
    question: str = Field(description="The whole question, ending in a question mark.")
    header: str = Field(description=f"A label of at most {MAX_HEADER} characters.")
    options: Annotated[list[AnswerOption], Field(min_length=2, max_length=4)] = Field(
        description="Different answers. The user can always write another one."
    )
    multiSelect: bool = Field(default=False, description="Whether several answers may be chosen.")  # noqa: N815


class AskUserQuestionInput(Input):
    questions: Annotated[list[PersonQuestion], Field(min_length=1, max_length=4)] = Field(
        description="One to four questions."
    )
    answers: dict[str, str | list[str]] = Field(default_factory=dict, description="Filled in by the user.")
    annotations: dict[str, object] | None = Field(default=None, description="Filled in by the user.")
    metadata: dict[str, object] | None = Field(default=None, description="Leave it out.")

    @model_validator(mode="after")
    def _questions_differ(self) -> "AskUserQuestionInput":
        texts = [each.question for each in self.questions]
        if len(set(texts)) < len(texts):
            raise ValueError("two questions are the same; ask each once")
        for each in self.questions:
            if len({option.label for option in each.options}) < len(each.options):
                raise ValueError(f"two options of {each.question!r} have the same label")
        return self


class AskUserQuestion(Tool[AskUserQuestionInput]):
    name = "AskUserQuestion"
    search_hint = "clarify choose decide between options person feedback"
    input_model = AskUserQuestionInput
    requires_user_interaction = True
    always_load = True

    def access(self, args: AskUserQuestionInput, run: RunContext) -> Access:
        return Access.bookkeeping()

    def is_read_only(self, args: AskUserQuestionInput) -> bool:
        return True

    def summary(self, args: AskUserQuestionInput) -> str:
        return f"AskUserQuestion({'; '.join(each.header for each in args.questions)})"

    def form(self, args: AskUserQuestionInput) -> tuple[FormField, ...]:
        return tuple(
            FormField(
                each.question,
                each.header,
                tuple(FormChoice(option.label, option.description, option.preview or "") for option in each.options),
                several=each.multiSelect,
            )
            for each in args.questions
        )

    def is_answered(self, args: AskUserQuestionInput) -> bool:
        return bool(args.answers)

    async def check_permission(self, args: AskUserQuestionInput, ctx: ToolContext) -> Check:
        """Answers that the model gave itself are taken out; those of a hook stay."""
        given = ctx.use.input
        calls = (call.input for call in ctx.message.calls if isinstance(call, ToolUse) and call.id == ctx.use.id)
        if not args.answers or given.get("answers") != next(calls, given).get("answers"):
            return NO_OPINION
        return Check(updated_input={key: value for key, value in given.items() if key != "answers"})

    async def call(self, args: AskUserQuestionInput, ctx: ToolContext) -> Output:
        answers = {each.question: answer_text(args.answers.get(each.question, "")) for each in args.questions}
        lines = [f"{question}\n  {answer or '(not answered)'}" for question, answer in answers.items()]
        if not any(answers.values()):
            text = "The user did not answer. Decide yourself where you safely can, and say what you assumed."
        else:
            text = "The user answered:\n\n" + "\n".join(lines)
        return Output(
            text=text,
            data={"questions": [each.model_dump() for each in args.questions], "answers": args.answers},
            card=Card("Answered" if any(answers.values()) else "Not answered", body="\n".join(lines)),
        )


def answer_text(answer: str | list[str]) -> str:
    return answer if isinstance(answer, str) else ", ".join(answer)

"""Skill: load the instructions for a kind of task."""

from handrail.builtin.services import ToolServices
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.permission import Check, Refuse, Verdict
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.tool import Tool


class SkillInput(PlainInput):
    skill: str = Field(min_length=1, description="The name of the skill, as the list has it.")
    args: str = Field(default="", description="Words for the skill.")


class Skill(Tool[SkillInput]):
    name = "Skill"
    search_hint = "instructions workflow procedure how to"
    input_model = SkillInput
    subject = "skill"
    always_load = True

    def __init__(self, services: ToolServices) -> None:
        self._skills = services.skills

    def summary(self, args: SkillInput) -> str:
        return f"Skill({args.skill})"

    def is_read_only(self, args: SkillInput) -> bool:
        """Each command that it runs is judged by itself."""
        return True

    def access(self, args: SkillInput, run: RunContext) -> Access:
        return Access.bookkeeping()

    async def validate(self, args: SkillInput, ctx: ToolContext) -> Refuse | None:
        if self._skills is None:
            return Refuse("There are no skills in this run.")
        why = self._skills.refuse(args.skill, ctx.use.id)
        return Refuse(why) if why else None

    async def check_permission(self, args: SkillInput, ctx: ToolContext) -> Check:
        question = self._skills.question(args.skill, ctx.use.id) if self._skills else "there are no skills"
        return Check(Verdict.ASK, question) if question else Check(Verdict.ALLOW, "a skill is only a text")

    async def call(self, args: SkillInput, ctx: ToolContext) -> Output:
        assert self._skills is not None
        loaded = await self._skills.load(args.skill, args.args, ctx)
        card = Card(title=f"Skill {args.skill}", detail=args.args)
        return Output(text=loaded.text, messages=loaded.messages, card=card, is_error=loaded.is_error)

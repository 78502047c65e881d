"""A prompt of a server behind us as a call, so that rules, hooks, questions and the audit log see it."""

from collections.abc import Sequence

from handrail.conversation.blocks import Json, ResultBlock
from handrail.errors import McpError, ToolError
from handrail.mcp.connection import ServerConnection
from handrail.mcp.known_places import named_access
from handrail.mcp.offers import RemotePrompt
from handrail.tools.access import Access
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.mcp_names import tool_name
from handrail.tools.output import Output
from handrail.tools.permission import Check, Verdict
from handrail.tools.raw import RawTool
from handrail.tools.tool import McpInfo, PromptView

SCHEMA = {"type": "object", "additionalProperties": {"type": "string"}}


class PromptCall(RawTool):
    """
    One request for a prompt, under the name that rules have for it: `mcp__server__prompt`.

    A client asks for prompts because a person has chosen them, so none is asked about unless a rule says so.
    """

    def __init__(self, link: ServerConnection, prompt: RemotePrompt) -> None:
        super().__init__(tool_name(link.name, prompt.name), SCHEMA)
        self.mcp = McpInfo(link.name, prompt.name)
        self.messages: Sequence[tuple[str, ResultBlock]] = ()
        """What the prompt says, once it was called: who speaks, and what."""
        self._link = link
        self._prompt = prompt

    def prompt(self, view: PromptView) -> str:
        return self._prompt.description

    def is_read_only(self, args: Json) -> bool:
        return True

    def is_concurrency_safe(self, args: Json) -> bool:
        return True

    def access(self, args: Json, run: RunContext) -> Access:
        return named_access(args, {}, self._link.place, str(run.cwd), Access.of())

    async def check_permission(self, args: Json, ctx: ToolContext) -> Check:
        return Check(Verdict.ALLOW, "the client asked for this prompt")

    def summary(self, args: Json) -> str:
        return f"Get the prompt {self._prompt.name} of {self._link.name}"

    async def call(self, args: Json, ctx: ToolContext) -> Output:
        try:
            self.messages = await self._link.prompt(self._prompt.name, {key: str(value) for key, value in args.items()})
        except McpError as error:
            raise ToolError(str(error)) from error
        return Output(blocks=tuple(block for _, block in self.messages))

"""LSP: ask a language server about code."""

from typing import Literal

from handrail.builtin.services import ToolServices
from handrail.builtin.support.places import place_of
from handrail.builtin.support.read_only import ReadOnlyTool
from handrail.errors import LspError, ToolError
from handrail.files.search_path import lies_in
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.code_questions import CodeQuestion, CodeView
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.permission import Refuse
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.wording import several


class LspInput(PlainInput):
    operation: Literal[
        "goToDefinition",
        "findReferences",
        "goToImplementation",
        "hover",
        "documentSymbol",
        "workspaceSymbol",
        "incomingCalls",
        "outgoingCalls",
        "diagnostics",
    ] = Field(description="What to ask.")
    file_path: str = Field(default="", description="The file that the question is about.")
    symbol: str = Field(default="", max_length=500, description="The name to ask about, as the file writes it.")
    line: int | None = Field(default=None, ge=1, description="The line it stands on, from 1.")
    column: int | None = Field(default=None, ge=1, description="The column it begins at, from 1.")


class Lsp(ReadOnlyTool[LspInput]):
    name = "LSP"
    search_hint = "language server definition references hover symbols diagnostics callers"
    input_model = LspInput
    subject = "file_path"
    should_defer = True
    tracks_files = True  # it shows single lines, so that a file does not count as read

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def access(self, args: LspInput, run: RunContext) -> Access:
        return Access.of(reads=args.file_path or (), walks=run.cwd, filtered=True)

    def summary(self, args: LspInput) -> str:
        return f"LSP({args.operation} {args.symbol or args.file_path})"

    async def validate(self, args: LspInput, ctx: ToolContext) -> Refuse | None:
        if args.operation == "workspaceSymbol":
            return None if args.symbol else Refuse("workspaceSymbol looks for a name. Give it as symbol.")
        return None if args.file_path else Refuse(f"{args.operation} is about a file. Give its path as file_path.")

    async def call(self, args: LspInput, ctx: ToolContext) -> Output:
        servers = self._services.language_servers
        if servers is None:
            raise ToolError("There are no language servers here. Use Grep and Read.")
        place = place_of(args.file_path, ctx, self._services) if args.file_path else None
        question = CodeQuestion(args.operation, place, args.symbol, args.line, args.column)
        try:
            answer = await servers.ask(question, CodeView(ctx.cwd, self._shows, self._services.is_hidden))
        except LspError as error:
            raise ToolError(str(error)) from error
        card = Card(title=self.summary(args), detail=several(answer.count, "result"))
        return Output(text=answer.text, data={"operation": args.operation, "results": answer.count}, card=card)

    def _shows(self, real: str) -> bool:
        return lies_in(real, self._services.working_dirs()) and not self._services.is_hidden(real)

"""What a tool says of itself: identity, texts, flags per input, careful defaults, cards."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, Field

from handrail.conversation.blocks import Json, Text
from handrail.conversation.messages import Attachment, SystemNote, UserMessage
from handrail.errors import InputError, ToolDefinitionError
from handrail.tools.access import EXCLUSIVE, SHARED
from handrail.tools.cards import Card
from handrail.tools.context import AgentType, Progress, RunContext, ToolContext
from handrail.tools.output import McpMeta, Output
from handrail.tools.permission import NO_OPINION, Ask, Check, NoRules, Refuse, Verdict
from handrail.tools.schema import Input
from handrail.tools.tool import DEFAULT_RESULT_CHARS, PLAIN_VIEW, McpInfo, PromptView, Tool, markdown_beside

pytestmark = pytest.mark.anyio


class NoteInput(Input):
    text: str = Field(description="What to note.")
    urgent: bool = False


class Note(Tool[NoteInput]):
    """The least a tool must say."""

    name = "Note"
    input_model = NoteInput

    def prompt(self, view: PromptView) -> str:
        return "Note something."

    async def call(self, args: NoteInput, ctx: ToolContext) -> Output:
        return Output(text=f"noted {args.text}")


@dataclass(frozen=True, slots=True)
class LinesWritten(Progress):
    """Progress with a payload of its own."""

    lines: int = 0


class Post(Tool[NoteInput]):
    """A tool that answers every question by its input."""

    name = "Post"
    aliases = ("Send", "SendTool")
    search_hint = "publish share text with others"
    input_model = NoteInput
    interrupt = "cancel"
    requires_user_interaction = True
    error_cancels_siblings = True
    timeout = 2.5
    max_result_chars = 100
    should_defer = True
    mcp = McpInfo("board", "post.message")

    def prompt(self, view: PromptView) -> str:
        helper = "Use Note for drafts." if "Note" in view.tools else "Write carefully."
        asks = "The user sees it first." if view.interactive else "Nobody checks it."
        agents = f" Agents: {', '.join(agent.name for agent in view.agents)}." if view.agents else ""
        return f"Post a text. {helper} {asks}{agents}"

    def description(self, args: NoteInput, view: PromptView) -> str:
        return f"Posts {len(args.text)} characters" + (" (plan mode)" if view.mode == "plan" else "")

    def display_name(self, args: NoteInput | None = None) -> str:
        return "Urgent post" if args and args.urgent else "Post"

    def classifier_text(self, args: NoteInput) -> str:
        return args.text

    def is_read_only(self, args: NoteInput) -> bool:
        return args.text == ""

    def is_concurrency_safe(self, args: NoteInput) -> bool:
        return not args.urgent

    def is_destructive(self, args: NoteInput) -> bool:
        return args.urgent

    async def validate(self, args: NoteInput, ctx: ToolContext) -> Refuse | Ask | None:
        if not args.text:
            return Refuse("There is nothing to post.")
        return Ask("Urgent posts wake people up.") if args.urgent else None

    async def check_permission(self, args: NoteInput, ctx: ToolContext) -> Check:
        return Check(Verdict.ALLOW, "it is harmless", {"text": args.text.strip()})

    def permission_matcher(self, args: NoteInput) -> Callable[[str], bool]:
        return args.text.startswith

    async def call(self, args: NoteInput, ctx: ToolContext) -> Output:
        ctx.progress(LinesWritten("writing", fraction=0.5, lines=3))
        return Output(
            text="posted",
            data={"id": 7},
            messages=(UserMessage((Text("look"),)), Attachment("reminder", ()), SystemNote("posted")),
            mcp=McpMeta({"trace": 1}, {"id": 7}),
        )

    def progress_card(self, progress: Sequence[Progress]) -> Card:
        lines = sum(news.lines for news in progress if isinstance(news, LinesWritten))
        return Card(title="Post", detail=f"{lines} lines")

    def group_card(self, inputs: Sequence[Json]) -> Card | None:
        return Card(title=f"{len(inputs)} posts")

    def tag(self, args: NoteInput) -> str:
        return "urgent" if args.urgent else ""


CALM, URGENT = NoteInput(text="hi"), NoteInput(text="fire", urgent=True)


@pytest.mark.proves("A29", "A30", "R2")
async def test_a_tool_that_says_only_the_least_is_treated_with_care(run: RunContext, ctx: ToolContext) -> None:
    note = Note()

    assert note.is_enabled()
    assert not note.is_read_only(CALM)
    assert not note.is_concurrency_safe(CALM)
    assert not note.is_destructive(CALM)
    assert note.access(CALM, run) == EXCLUSIVE
    assert await note.validate(CALM, ctx) is None
    assert await note.check_permission(CALM, ctx) is NO_OPINION
    assert NO_OPINION.verdict is None
    assert not note.permission_matcher(CALM)("*")
    assert note.classifier_text(CALM) == ""
    assert note.display_name() == note.display_name(CALM) == "Note"
    assert note.description(CALM, PLAIN_VIEW) == "Note('hi')"
    assert (note.aliases, note.search_hint, note.mcp, note.interrupt, note.timeout) == ((), "", None, None, None)
    assert (note.requires_user_interaction, note.error_cancels_siblings) == (False, False)
    assert (note.should_defer, note.always_load, note.blocking) == (False, False, False)
    assert note.max_result_chars == DEFAULT_RESULT_CHARS == 30_000


@pytest.mark.proves("A2", "A3", "A21", "A22")
def test_members_are_plain_class_attributes(run: RunContext) -> None:
    post: Tool[NoteInput] = Post()

    assert (post.name, post.aliases) == ("Post", ("Send", "SendTool"))
    assert post.mcp == McpInfo(server="board", tool="post.message")
    assert (post.max_result_chars, post.should_defer, post.timeout) == (100, True, 2.5)


@pytest.mark.proves("A12", "A14")
def test_flags_are_decided_per_input(run: RunContext) -> None:
    post = Post()

    assert [post.is_concurrency_safe(args) for args in (CALM, URGENT)] == [True, False]
    assert [post.access(args, run) for args in (CALM, URGENT)] == [SHARED, EXCLUSIVE]
    assert [post.is_destructive(args) for args in (CALM, URGENT)] == [False, True]
    assert [post.is_read_only(args) for args in (NoteInput(text=""), CALM)] == [True, False]


@pytest.mark.proves("A10", "M6")
def test_a_description_may_depend_on_the_input_and_on_the_mode() -> None:
    assert Post().description(CALM, PLAIN_VIEW) == "Posts 2 characters"
    planning = PromptView(permissions=lambda: NoRules(mode="plan"))
    assert Post().description(URGENT, planning) == "Posts 4 characters (plan mode)"


@pytest.mark.proves("A11", "M6")
def test_a_prompt_may_depend_on_people_tools_and_agents_present() -> None:
    assert Post().prompt(PLAIN_VIEW) == "Post a text. Write carefully. Nobody checks it."
    view = PromptView(interactive=True, tools=frozenset({"Note"}), agents=(AgentType("Explore"),))
    assert Post().prompt(view) == "Post a text. Use Note for drafts. The user sees it first. Agents: Explore."


@pytest.mark.proves("A18", "A19", "A20", "A25", "A26")
async def test_a_tool_speaks_about_meaning_permission_rules_and_the_classifier(ctx: ToolContext) -> None:
    post = Post()

    assert await post.validate(NoteInput(text=""), ctx) == Refuse("There is nothing to post.")
    assert await post.validate(URGENT, ctx) == Ask("Urgent posts wake people up.")
    assert await post.check_permission(CALM, ctx) == Check(Verdict.ALLOW, "it is harmless", {"text": "hi"})
    assert [post.permission_matcher(CALM)(content) for content in ("h", "fire")] == [True, False]
    assert [post.display_name(args) for args in (None, CALM, URGENT)] == ["Post", "Post", "Urgent post"]
    assert post.classifier_text(CALM) == "hi"


@pytest.mark.proves("A31", "A32", "A37")
async def test_a_call_reports_typed_progress_and_returns_data_messages_and_mcp_meta(ctx: ToolContext) -> None:
    news: list[Progress] = []

    output = await Post().call(CALM, ctx.replace(progress=news.append))

    assert news == [LinesWritten("writing", fraction=0.5, lines=3)]
    assert Post().progress_card(news) == Card(title="Post", detail="3 lines")
    assert output.data == {"id": 7}
    assert output.messages == (UserMessage((Text("look"),)), Attachment("reminder", ()), SystemNote("posted"))
    assert output.mcp == McpMeta({"trace": 1}, {"id": 7})


@pytest.mark.proves("A5", "A7", "A8", "P2")
def test_the_input_model_checks_at_run_time_and_becomes_the_schema_of_the_request() -> None:
    assert Note().parse({"text": "hi"}) == CALM
    with pytest.raises(InputError, match="'text' is missing"):
        Note().parse({})
    assert Note().input_schema == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to note."},
            "urgent": {"type": "boolean", "default": False},
        },
        "required": ["text"],
        "additionalProperties": False,
    }


@pytest.mark.proves("A28")
@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (NoteInput(text="hi"), "Note('hi')"),
        (NoteInput(text="x" * 200), f"Note('{'x' * 59}... (202 characters))"),
        (NoteInput(text=""), "Note"),
    ],
)
def test_a_call_has_a_short_form_for_messages(args: NoteInput, expected: str) -> None:
    assert Note().summary(args) == expected


class Empty(Input):
    pass


def test_a_call_without_input_is_told_by_its_name() -> None:
    class Ping(Tool[Empty]):
        name = "Ping"
        input_model = Empty

    assert Ping().summary(Empty()) == "Ping"
    assert Ping().summary(object()) == "Ping"  # type: ignore[arg-type]  # whatever a subclass parses to


@pytest.mark.proves("A4")
@pytest.mark.parametrize(
    ("members", "problem"),
    [
        pytest.param({"search_hint": "write keep remember."}, "ends with a period", id="a final period"),
        pytest.param({"search_hint": "write keep"}, "3 to 10 words", id="too few words"),
        pytest.param({"search_hint": "a b c d e f g h i j k"}, "3 to 10 words", id="too many words"),
        pytest.param({"search_hint": "write a note down"}, "repeats 'note'", id="a word of the name"),
        pytest.param({"aliases": "Old"}, "Give a tuple", id="aliases that are one text"),
        pytest.param({"aliases": ("not ok",)}, "cannot be called 'not ok'", id="an alias no API accepts"),
        pytest.param({"name": "nöte"}, "cannot be called 'nöte'", id="a name no API accepts"),
        pytest.param({"name": "n" * 129}, "1 to 128", id="a name that is too long"),
        pytest.param({"name": ""}, "cannot be called ''", id="no name"),
    ],
)
def test_a_tool_that_cannot_be_called_or_found_fails_where_it_is_declared(
    members: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ToolDefinitionError, match=problem):
        type("Bad", (Tool,), {"name": "Note", "input_model": NoteInput, **members})


def test_the_prompt_is_the_markdown_beside_the_module_unless_the_tool_says_otherwise() -> None:
    class Silent(Tool[NoteInput]):
        name = "Silent"
        input_model = NoteInput

    assert markdown_beside("handrail.builtin.sleep").startswith("Wait for some seconds")
    for module in ("handrail.builtin.nowhere", "__main__", "nowhere.at.all", "json.decoder.x"):
        with pytest.raises(ToolDefinitionError, match=r"Write one, or define prompt\(\)"):
            markdown_beside(module)
    with pytest.raises(ToolDefinitionError):
        Silent().prompt(PLAIN_VIEW)


async def test_a_tool_without_call_says_what_it_needs(ctx: ToolContext) -> None:
    class Hollow(Tool[NoteInput]):
        name = "Hollow"
        input_model = NoteInput

    with pytest.raises(NotImplementedError, match="Hollow needs call"):
        await Hollow().call(CALM, ctx)
    with pytest.raises(NotImplementedError, match="needs call_blocking"):
        Hollow().call_blocking(CALM, ctx)


@pytest.mark.parametrize(
    ("partial", "detail"),
    [
        ({}, ""),
        ({"count": 3}, ""),
        ({"count": 3, "text": "half a wor"}, "half a wor"),
        ({"text": "first line\nsecond"}, "first line"),
        ({"text": "x" * 1000}, "x" * 200 + "... (1,000 characters)"),
    ],
)
def test_a_call_can_be_drawn_from_as_much_input_as_has_arrived(partial: Json, detail: str) -> None:
    assert Note().use_card(partial) == Card(title="Note", detail=detail)


def test_every_end_of_a_call_has_a_card() -> None:
    note = Note()
    own = Card(title="mine")

    assert note.progress_card([]) == Card(title="Note")
    assert note.progress_card([Progress("one", 0.5)]) == Card(title="Note", detail="one 50%")
    assert note.progress_card([Progress("one"), Progress("two")]) == Card(title="Note", detail="two")
    assert note.result_card(Output(text="done"), [Progress("one")]) == Card(title="Note", body="done")
    assert note.result_card(Output(data={"n": 1}), []) == Card(title="Note", body='{"n":1}')
    assert note.result_card(Output(text="done", card=own), []) == own
    assert note.rejected_card({}, "no") == Card(title="Note", detail="refused", body="no", tone="warning")
    assert note.error_card("broken") == Card(title="Note", detail="failed", body="broken", tone="bad")
    assert note.group_card([{}, {}]) is None
    assert note.tag(CALM) == ""
    assert Post().group_card([{}, {}]) == Card(title="2 posts")
    assert Post().tag(URGENT) == "urgent"


def test_a_model_of_its_own_is_enough_as_input() -> None:
    class Loose(BaseModel):
        n: int = 1

    class Counter(Tool[Loose]):
        name = "Counter"
        input_model = Loose

    assert Counter().parse({}).n == 1
    assert Counter().input_schema["additionalProperties"] is False

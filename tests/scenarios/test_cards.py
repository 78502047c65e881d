"""What a person sees of the calls of a run: cards, made by the tools and drawn by front ends that know no tool."""

import re
from collections.abc import Sequence
from io import StringIO
from typing import Any

import pytest

from handrail.conversation.blocks import Json
from handrail.dispatch.gate import Rails, WithoutPolicy
from handrail.errors import ToolError
from handrail.headless.debug import DebugPrinter
from handrail.permissions.facts import Evidence
from handrail.testing.model import say, use
from handrail.tools.cards import Card
from handrail.tools.context import Progress, ToolContext
from handrail.tools.events import CallFinished, CallQueued, CallStarted
from handrail.tools.output import Output
from handrail.tools.permission import Decision, Verdict
from handrail.tools.request import CallRequest
from handrail.tools.schema import Input
from handrail.tools.tool import Tool
from tests.scenarios.playing import an_agent, only, played, scripted

pytestmark = pytest.mark.anyio


class PostInput(Input):
    text: str
    urgent: bool = False


class Post(Tool[PostInput]):
    """A tool that draws everything itself."""

    name = "Post"
    input_model = PostInput

    def prompt(self, view: object) -> str:
        return "Post a note."

    def is_read_only(self, args: PostInput) -> bool:
        return args.text != "secret"

    async def call(self, args: PostInput, ctx: ToolContext) -> Output:
        ctx.progress(Progress("opening"))
        ctx.progress(Progress("writing", 0.5))
        if args.text == "broken":
            raise ToolError("the board is full")
        return Output(text=f"posted {args.text}")

    def use_card(self, partial: Json) -> Card:
        return Card("Post", str(partial.get("text")))

    def tag(self, args: PostInput) -> str:
        return "urgent" if args.urgent else ""

    def result_card(self, output: Output, progress: Sequence[Progress]) -> Card:
        return Card("Posted", output.text, body="\n".join(news.message for news in progress))

    def rejected_card(self, partial: Json, reason: str) -> Card:
        return Card("Post", "not allowed", body=reason, tone="warning")

    def error_card(self, message: str) -> Card:
        return Card("Post", "went wrong", body=message, tone="bad")

    def group_card(self, inputs: Sequence[Json]) -> Card | None:
        return Card("Post", f"{len(inputs)} notes")


class Clumsy(Post):
    """A tool whose pictures all fail."""

    def use_card(self, partial: Json) -> Card:
        raise RuntimeError("no picture")

    progress_card = result_card = rejected_card = error_card = group_card = tag = use_card  # type: ignore[assignment]


class NoSecrets(WithoutPolicy):
    async def decide(self, request: CallRequest, evidence: Evidence) -> Decision:
        if request.use.input.get("text") == "secret":
            return Decision(Verdict.DENY, "secrets stay here")
        return Decision(Verdict.ALLOW, "")


def post(number: int, text: str, **more: Any) -> Any:
    return use(str(number), "Post", text=text, **more)


async def told(tool: Tool[Any], *calls: Any) -> list[str]:
    """What `--verbose` says of the calls of one answer, without the times."""
    out = StringIO()
    printer = DebugPrinter(out, everything=False)
    agent = an_agent(scripted([list(calls), [say("Done.")]]), tool, rails=Rails(NoSecrets()))
    for event in await played(agent.run("go")):
        printer.on_event(event)
    lines = [line.removeprefix("handrail: ") for line in out.getvalue().splitlines()]
    return [re.sub("(?<=stages: ).*", "...", line.partition(" after ")[0]) for line in lines]


@pytest.mark.proves("O2", "O3", "O7")
async def test_a_call_is_shown_with_its_tag_its_progress_and_a_result_that_holds_the_progress() -> None:
    assert await told(Post(), post(1, "hello", urgent=True)) == [
        "Post started (1)",
        "  Post hello [urgent]",
        "Post goes on (1)",
        "  Post opening",
        "Post goes on (1)",
        "  Post writing 50%",
        "Post ok",
        "  Posted posted hello",
        "    opening",
        "    writing",
        '  input: {"text": "hello", "urgent": true}',
        "  decision: allow",
        "  stages: ...",
        "ended: completed",
    ]


@pytest.mark.proves("O4", "O5", "O6")
async def test_a_refusal_an_error_and_a_group_are_shown_as_the_tool_draws_them() -> None:
    shown = await told(Post(), post(1, "secret"), post(2, "broken"))

    assert shown[shown.index("Post denied") :][:3] == ["Post denied", "? Post not allowed", "    secrets stay here"]
    assert shown[shown.index("Post error") :][:3] == ["Post error", "! Post went wrong", "    the board is full"]
    assert "Post 2 notes" in shown


async def test_a_tool_that_cannot_draw_is_shown_by_its_name_and_works_all_the_same() -> None:
    shown = await told(Clumsy(), post(1, "hello"), post(2, "secret"))

    assert shown[:2] == ["Post started (1)", "  Post"]
    assert "Post ok" in shown
    assert "    posted hello" in shown
    assert "Post denied" in shown


@pytest.mark.proves("E34", "E35")
async def test_events_tell_which_calls_run_and_whether_a_new_message_would_stop_them() -> None:
    agent = an_agent(
        scripted([[post(1, "hello"), post(2, "secret")], [say("Done.")]]), Post(), rails=Rails(NoSecrets())
    )

    running: set[str] = set()
    seen: list[tuple[set[str], bool]] = []
    events = await played(agent.run("go"))
    for event in events:
        match event:
            case CallStarted(use):
                running.add(use.id)
                seen.append((set(running), event.interruptible))
            case CallFinished(outcome):
                running.discard(outcome.use.id)

    assert running == set()
    assert seen == [({"1"}, True), ({"2"}, False)]
    assert [event.card.detail for event in only(events, CallQueued)] == ["hello", "secret"]

"""Tools of other frameworks in handrail: careful by default, with the schema and the failures that they have there."""

import base64
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from agents import RunContextWrapper, ToolOutputFileContent, ToolOutputImage, ToolOutputText, function_tool
from agents.tool_guardrails import tool_input_guardrail
from langchain_core.tools import InjectedToolCallId, StructuredTool, ToolException
from langchain_core.tools import tool as langchain_tool
from langgraph.prebuilt import InjectedState
from pydantic import AfterValidator
from pydantic_ai import BinaryContent, ModelRetry, RunContext, Tool, ToolReturn

from handrail import Access, Agent, Image, Text, ToolDefinitionError
from handrail.adapters.foreign_tool import ForeignTool
from handrail.adapters.langchain import from_langchain
from handrail.adapters.openai_agents import from_openai_agents
from handrail.adapters.pydantic_ai import from_pydantic_ai
from handrail.conversation.blocks import Document, ResultBlock
from handrail.testing import CallRules, ScriptedModel, call, say, use
from handrail.tools.access import EXCLUSIVE, SHARED
from handrail.tools.outcome import Status

pytestmark = pytest.mark.anyio

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
RULES = CallRules(allow=["weather"])


def weather(city: str, days: int = 1) -> str:
    """The weather of a city."""
    if city == "Atlantis":
        raise LookupError("Atlantis is under water")
    return f"{city}: {days} days of rain"


def of_langchain(**flags: Any) -> ForeignTool:
    return from_langchain(langchain_tool(weather), **flags)


def of_pydantic_ai(**flags: Any) -> ForeignTool:
    return from_pydantic_ai(weather, **flags)


def of_openai_agents(**flags: Any) -> ForeignTool:
    return from_openai_agents(function_tool(weather, strict_mode=False, failure_error_function=None), **flags)


each_origin = pytest.mark.parametrize(
    "made", [of_langchain, of_pydantic_ai, of_openai_agents], ids=["langchain", "pydantic-ai", "openai-agents"]
)
Made = Callable[..., ForeignTool]


@each_origin
async def test_a_foreign_tool_has_its_name_description_and_schema(made: Made) -> None:
    found = made()

    assert (found.name, found.prompt(None)) == ("weather", "The weather of a city.")  # type: ignore[arg-type]
    assert set(found.input_schema["properties"]) == {"city", "days"}
    assert found.input_schema["required"] == ["city"]


@pytest.mark.proves("R2")
@each_origin
async def test_a_foreign_tool_is_asked_about_and_runs_alone_unless_flags_say_otherwise(
    made: Made, run: Any, tmp_path: Path
) -> None:
    careful, declared = made(), made(read_only=True, concurrency_safe=True, name="forecast")
    refused = await call(careful, CallRules(approve=False), city="Rome")

    assert refused.status is Status.DENIED
    assert careful.access({"city": "Rome"}, run) == EXCLUSIVE
    assert declared.access({"city": "Rome"}, run) == SHARED
    assert (await call(declared, CallRules(approve=False), city="Rome")).result.text == "Rome: 1 days of rain"


@each_origin
@pytest.mark.parametrize(
    ("values", "status", "text"),
    [
        pytest.param({"city": "Rome", "days": 2}, Status.OK, "Rome: 2 days of rain", id="allowed"),
        pytest.param({}, Status.ERROR, "The required field 'city' is missing.", id="wrong input"),
        pytest.param({"city": "Atlantis"}, Status.ERROR, "Atlantis is under water", id="failed"),
    ],
)
async def test_a_call_of_a_foreign_tool_ends_as_one_of_our_own(
    made: Made, values: dict[str, Any], status: Status, text: str
) -> None:
    outcome = await call(made(), RULES, **values)

    assert outcome.status is status
    assert text in outcome.result.text


@each_origin
async def test_an_agent_of_ours_uses_a_foreign_tool(made: Made, tmp_path: Path) -> None:
    model = ScriptedModel([[use("1", "weather", city="Rome")], [say("It rains.")]])

    async with Agent(model, tools=[made()], allow=["weather"], cwd=tmp_path) as agent:
        answer = await agent.ask("What is the weather in Rome?")

    assert answer.text == "It rains."
    assert "1 days of rain" in str(agent.messages)


async def test_what_a_foreign_tool_touches_can_be_declared() -> None:
    @langchain_tool
    def save(path: str) -> str:
        """Save to a file."""
        return "saved"

    found = from_langchain(save, access=lambda path: Access.of(writes=[path]))
    outcome = await call(found, CallRules(allow=["save"], deny=["Edit(//srv/**)"]), path="/srv/new.txt")

    assert outcome.status is Status.DENIED


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        pytest.param({"read_only": "no"}, "weather: read_only is 'no'. Use True or False", id="a text for a yes or no"),
        pytest.param({"name": "two words"}, "A tool cannot be called 'two words'", id="a name that models refuse"),
        pytest.param({"subject": "town"}, "weather: subject names 'town'", id="a subject that is no argument"),
        pytest.param({"reads": "path"}, "weather: 'reads' is not a flag", id="a flag that does not exist"),
    ],
)
def test_flags_that_cannot_be_meant_are_refused(flags: dict[str, Any], problem: str) -> None:
    with pytest.raises((ToolDefinitionError, TypeError), match=problem):
        of_langchain(**flags)


# LangChain


async def test_a_tool_exception_of_langchain_is_an_error_with_its_text() -> None:
    @langchain_tool
    def shout() -> str:
        """Shout."""
        raise ToolException("too loud")

    handled = langchain_tool(weather).model_copy(update={"handle_tool_error": True})
    outcome = await call(from_langchain(shout), CallRules(allow=["shout"]))

    assert (outcome.status, outcome.result.text) == (Status.ERROR, "too loud")
    shout.handle_tool_error = "do not shout"
    outcome = await call(from_langchain(shout), CallRules(allow=["shout"]))
    assert (outcome.result.is_error, outcome.result.text) == (True, "do not shout")
    assert (await call(from_langchain(handled), RULES, city="Rome")).status is Status.OK


async def test_a_langchain_tool_may_take_the_id_of_its_call_and_a_schema_of_its_own() -> None:
    @langchain_tool
    def note(text: str, call_id: Annotated[str, InjectedToolCallId]) -> str:
        """Take a note."""
        return f"{text} {call_id}"

    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    raw = StructuredTool.from_function(lambda text: text, name="raw", description="Say it.", args_schema=schema)

    assert (await call(from_langchain(note), CallRules(allow=["note"]), text="hi")).result.text == "hi call-1"
    assert (await call(from_langchain(raw), CallRules(allow=["raw"]), text="hi")).result.text == "hi"


@pytest.mark.parametrize("made", [from_langchain, from_pydantic_ai], ids=["langchain", "pydantic-ai"])
async def test_what_only_the_framework_finds_wrong_with_an_input_is_told(made: Any) -> None:
    def positive(number: int) -> int:
        if number < 0:
            raise ValueError("it is negative")
        return number

    def root(number: Annotated[int, AfterValidator(positive)]) -> float:
        """The square root."""
        return math.sqrt(number)

    found = made(langchain_tool(root) if made is from_langchain else root)
    outcome = await call(found, CallRules(allow=["root"]), number=-1)

    assert outcome.status is Status.ERROR
    assert outcome.result.text == "The input for root is wrong. number: Value error, it is negative."


async def test_content_of_a_langchain_tool_becomes_blocks() -> None:
    @langchain_tool
    async def look() -> list[dict[str, str]]:
        """Look."""
        return [
            {"type": "text", "text": "the view"},
            {"type": "image", "base64": PNG, "mime_type": "image/png"},
            {"type": "search_result", "title": "views"},
        ]

    outcome = await call(from_langchain(look), CallRules(allow=["look"]))

    assert outcome.result.content == (
        Text("the view"),
        Image(PNG, "image/png"),
        Text('{"type":"search_result","title":"views"}'),
    )


# pydantic-ai


async def test_a_pydantic_ai_tool_finds_its_dependencies_in_its_context() -> None:
    async def greet(ctx: RunContext[str], name: str) -> str:
        """Greet."""
        if name == "nobody":
            raise ModelRetry("Give a name.")
        return f"{ctx.deps} {name} ({ctx.tool_name})"

    found = from_pydantic_ai(greet, deps="Hello")

    assert (await call(found, CallRules(allow=["greet"]), name="Ann")).result.text == "Hello Ann (greet)"
    asked_again = await call(found, CallRules(allow=["greet"]), name="nobody")
    assert (asked_again.status, asked_again.result.text) == (Status.ERROR, "Give a name.")


async def test_content_of_a_pydantic_ai_tool_becomes_blocks() -> None:
    def look() -> Any:
        """Look."""
        return ToolReturn(["the view", BinaryContent(base64.b64decode(PNG), media_type="image/png")])

    outcome = await call(from_pydantic_ai(look), CallRules(allow=["look"]))

    assert outcome.result.content == (Text("the view"), Image(PNG, "image/png"))


async def test_a_tool_that_requires_approval_is_asked_about_whatever_the_rules_say() -> None:
    strict = from_pydantic_ai(Tool(weather, requires_approval=True))
    sdk = from_openai_agents(function_tool(weather, strict_mode=False, needs_approval=True))

    for found in (strict, sdk):
        refused = await call(found, CallRules(allow=["weather"], approve=False), city="Rome")
        assert refused.status is Status.DENIED


@langchain_tool
def of_a_run(text: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
    """Needs the state of a graph."""
    return text


@tool_input_guardrail
def guard(data: Any) -> Any:
    return data


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        pytest.param(lambda: from_langchain(of_a_run), "needs 'state' of a run", id="langgraph"),
        pytest.param(
            lambda: from_pydantic_ai(Tool(weather, prepare=lambda ctx, tool: tool)), "prepare", id="pydantic-ai"
        ),
        pytest.param(
            lambda: from_openai_agents(function_tool(weather, strict_mode=False, tool_input_guardrails=[guard])),
            "guardrails",
            id="openai-agents",
        ),
        pytest.param(
            lambda: from_openai_agents(function_tool(weather, strict_mode=False, is_enabled=False)),
            "is_enabled",
            id="a tool that is switched off",
        ),
        pytest.param(lambda: from_langchain(weather), "Put @tool of langchain_core", id="a function for langchain"),
        pytest.param(lambda: from_openai_agents(weather), "Put @function_tool above", id="a function for the SDK"),
        pytest.param(lambda: from_pydantic_ai(3), "neither a function nor a Tool", id="a number for pydantic-ai"),
    ],
)
def test_what_is_no_tool_or_only_its_framework_could_run_as_it_is_meant_is_refused(make: Any, problem: str) -> None:
    with pytest.raises(ToolDefinitionError, match=problem):
        make()


# OpenAI Agents SDK


async def test_content_of_a_function_tool_becomes_blocks() -> None:
    @function_tool
    def look(ctx: RunContextWrapper[str]) -> Any:
        """Look."""
        return [ToolOutputText(text=ctx.context), ToolOutputImage(image_url=f"data:image/png;base64,{PNG}")]

    outcome = await call(from_openai_agents(look, context="the view"), CallRules(allow=["look"]))

    assert outcome.result.content == (Text("the view"), Image(PNG, "image/png"))


# Bytes


def as_langchain(data: bytes, kind: str) -> ForeignTool:
    @langchain_tool
    def look() -> Any:
        """Look."""
        return [{"type": "file", "base64": base64.b64encode(data).decode(), "mime_type": kind}]

    return from_langchain(look)


def as_pydantic_ai(data: bytes, kind: str) -> ForeignTool:
    def look() -> Any:
        """Look."""
        return BinaryContent(data, media_type=kind)

    return from_pydantic_ai(look)


def as_openai_agents(data: bytes, kind: str) -> ForeignTool:
    @function_tool
    def look() -> Any:
        """Look."""
        return ToolOutputFileContent(file_data=f"data:{kind};base64,{base64.b64encode(data).decode()}")

    return from_openai_agents(look)


@pytest.mark.proves("R6")
@pytest.mark.parametrize("made", [as_langchain, as_pydantic_ai, as_openai_agents])
@pytest.mark.parametrize(
    ("data", "kind", "shown"),
    [
        pytest.param(b"%PDF-1.7", "application/pdf", Document("JVBERi0xLjc=", "application/pdf"), id="a PDF"),
        pytest.param(b"the view", "text/plain", Text("the view"), id="a text"),
        pytest.param(b"{}", "application/json", Text("{}"), id="a text of another kind"),
        pytest.param(b"text", "image/png", Text("[what is said to be image/png and is not]"), id="no image"),
        pytest.param(
            b"\xff\xfe",
            "audio/wav",
            Text("[file of the type 'audio/wav', which cannot be shown here: models do not read it]"),
            id="a sound",
        ),
        pytest.param(
            b"\x89PNG" + bytes(26_000_000),
            "image/png",
            Text("[image of the type 'image/png': 34,666,672 characters in base64, which is too much]"),
            id="a huge image",
        ),
        pytest.param(
            bytes(26_000_000),
            "text/plain",
            Text("[file of the type 'text/plain': 34,666,668 characters in base64, which is too much]"),
            id="a huge text",
        ),
    ],
)
async def test_bytes_of_a_foreign_tool_are_shown_as_models_read_them(
    made: Any, data: bytes, kind: str, shown: ResultBlock
) -> None:
    outcome = await call(made(data, kind), CallRules(allow=["look"]))

    assert outcome.result.content == (shown,)

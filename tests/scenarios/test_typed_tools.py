"""A tool is typed throughout: what it accepts, what it reports while it runs, what it returns."""

import dataclasses
from pathlib import Path

import pytest
from pydantic import BaseModel

from handrail import Agent, Output, Tool, ToolContext, tool
from handrail.events import CallFinished, CallProgress
from handrail.testing import ScriptedModel, say, use
from handrail.tools.context import Progress


class Hit(BaseModel):
    line: int
    text: str


class Search(BaseModel):
    word: str
    limit: int = 1


@dataclasses.dataclass(frozen=True)
class Looked(Progress):
    """Progress that carries a number of its own."""

    files: int = 0


class Find(Tool[Search]):
    name = "Find"
    input_model = Search

    def is_read_only(self, args: Search) -> bool:
        return True

    def prompt(self, view: object) -> str:
        return "Find a word."

    async def call(self, args: Search, ctx: ToolContext) -> Output:
        ctx.progress(Looked("looking", files=3))
        return Output(data=[Hit(line=number, text=args.word) for number in range(args.limit)])


@tool(read_only=True)
async def find(word: str, limit: int = 1) -> list[Hit]:
    """Find a word."""
    return [Hit(line=number, text=word) for number in range(limit)]


@pytest.mark.anyio
@pytest.mark.proves("A1")
@pytest.mark.parametrize("own", [find, Find()], ids=["a function", "a class"])
async def test_input_progress_and_data_keep_their_types_from_the_tool_to_the_events(
    own: Tool[object], tmp_path: Path
) -> None:
    model = ScriptedModel([[use("1", own.name, word="x", limit=2)], [say("Found.")]])
    async with Agent(model, [own], builtin_tools=False, cwd=tmp_path) as agent:
        events = [event async for event in agent.run("Find it.")]

    [finished] = [event for event in events if isinstance(event, CallFinished)]
    progress = [event.progress for event in events if isinstance(event, CallProgress)]
    assert finished.outcome.output is not None
    assert finished.outcome.output.data == [Hit(line=0, text="x"), Hit(line=1, text="x")]
    assert finished.outcome.result.text == '[{"line":0,"text":"x"},{"line":1,"text":"x"}]'
    assert progress == ([Looked("looking", files=3)] if own.name == "Find" else [])


@pytest.mark.proves("A1")
def test_the_type_that_a_function_returns_is_the_schema_of_its_data() -> None:
    schema = find.output_schema
    assert schema is not None
    assert (schema["type"], list(schema["$defs"])) == ("array", ["Hit"])

"""
The real agent loops of other frameworks, each with a model that asks for given calls in one answer and then says done.

What comes back is what their models would be told: the text of each result, and whether it is marked as an error.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents import Agent as SdkAgent
from agents import FunctionTool, Model, ModelResponse, RunConfig, Runner, Usage
from agents.items import ToolCallOutputItem
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import ModelResponse as PydanticResponse
from pydantic_ai.messages import TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from handrail.adapters import ToolSession
from handrail.adapters.langchain import langchain_tools
from handrail.adapters.openai_agents import openai_agents_tools
from handrail.adapters.pydantic_ai import pydantic_ai_tools

Calls = Sequence[tuple[str, Mapping[str, Any] | str]]
"""Names of tools, and their arguments or the text that a model wrote in their place."""
DONE = "done"


@dataclass(frozen=True)
class Told:
    """The result of a call as a framework gives it to its model."""

    content: Any
    is_error: bool = False

    @property
    def text(self) -> str:
        assert isinstance(self.content, str)
        return self.content


@dataclass(frozen=True)
class Framework:
    name: str
    run: Callable[[ToolSession, Calls], Any]
    """Runs an agent to its end; the results of its calls, in order."""
    run_sync: Callable[[ToolSession, Calls], list[Told]]
    marks_errors: bool = True

    def __str__(self) -> str:
        return self.name


# LangGraph


def graph(session: ToolSession, calls: Calls) -> Any:
    asked = [{"name": name, "args": values, "id": f"c{n}"} for n, (name, values) in enumerate(calls)]
    model = GenericFakeChatModel(messages=iter([AIMessage("", tool_calls=asked), AIMessage(DONE)]))

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    made = StateGraph(MessagesState)
    made.add_node("model", ask)
    made.add_node("tools", ToolNode(langchain_tools(session)))
    made.add_edge(START, "model")
    made.add_conditional_edges("model", tools_condition)
    made.add_edge("tools", "model")
    return made.compile()


GO = {"messages": [("user", "go")]}


def of_graph(state: Mapping[str, Any]) -> list[Told]:
    assert state["messages"][-1].content == DONE
    found = [each for each in state["messages"] if isinstance(each, ToolMessage)]
    return [Told(each.content, each.status == "error") for each in found]


async def run_graph(session: ToolSession, calls: Calls) -> list[Told]:
    return of_graph(await graph(session, calls).ainvoke(GO))


def run_graph_sync(session: ToolSession, calls: Calls) -> list[Told]:
    return of_graph(graph(session, calls).invoke(GO))


# pydantic-ai


def pydantic_agent(session: ToolSession, calls: Calls) -> Any:
    def answer(messages: list[Any], _info: Any) -> Any:
        if len(messages) > 1:
            return PydanticResponse([TextPart(DONE)])
        return PydanticResponse([ToolCallPart(name, values) for name, values in calls])

    return PydanticAgent(FunctionModel(answer), tools=pydantic_ai_tools(session))


def of_pydantic(result: Any) -> list[Told]:
    assert result.output == DONE
    parts = [part for message in result.all_messages() for part in message.parts]
    return [Told(part.content, part.outcome != "success") for part in parts if isinstance(part, ToolReturnPart)]


async def run_pydantic(session: ToolSession, calls: Calls) -> list[Told]:
    return of_pydantic(await pydantic_agent(session, calls).run("go"))


def run_pydantic_sync(session: ToolSession, calls: Calls) -> list[Told]:
    return of_pydantic(pydantic_agent(session, calls).run_sync("go"))


# OpenAI Agents SDK


def sdk_call(number: int, name: str, values: Mapping[str, Any] | str) -> Any:
    text = values if isinstance(values, str) else json.dumps(values)
    return ResponseFunctionToolCall(type="function_call", call_id=f"c{number}", name=name, arguments=text)


def sdk_message(text: str) -> Any:
    content = [ResponseOutputText(annotations=[], text=text, type="output_text")]
    return ResponseOutputMessage(id="m", role="assistant", status="completed", type="message", content=content)


class SdkModel(Model):  # type: ignore[misc]  # mypy does not follow the framework
    def __init__(self, calls: Calls) -> None:
        asked = [sdk_call(number, name, values) for number, (name, values) in enumerate(calls)]
        self._answers: list[list[Any]] = [asked, [sdk_message(DONE)]]

    async def get_response(self, *_args: Any, **_more: Any) -> ModelResponse:
        return ModelResponse(output=self._answers.pop(0), usage=Usage(), response_id=None)

    def stream_response(self, *_args: Any, **_more: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


QUIET = RunConfig(tracing_disabled=True)


def sdk_agent(tools: Iterable[FunctionTool], calls: Calls) -> Any:
    return SdkAgent(name="worker", model=SdkModel(calls), tools=list(tools))


def of_sdk(result: Any) -> list[Told]:
    assert result.final_output == DONE
    return [Told(each.output) for each in result.new_items if isinstance(each, ToolCallOutputItem)]


async def run_sdk(session: ToolSession, calls: Calls) -> list[Told]:
    return of_sdk(await Runner.run(sdk_agent(openai_agents_tools(session), calls), "go", run_config=QUIET))


def run_sdk_sync(session: ToolSession, calls: Calls) -> list[Told]:
    return of_sdk(Runner.run_sync(sdk_agent(openai_agents_tools(session), calls), "go", run_config=QUIET))


FRAMEWORKS = (
    Framework("langgraph", run_graph, run_graph_sync),
    Framework("pydantic-ai", run_pydantic, run_pydantic_sync),
    Framework("openai-agents", run_sdk, run_sdk_sync, marks_errors=False),
)

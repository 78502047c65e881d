"""What those who make an Agent may give, made into what a run is made of. Wrong arguments raise here."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from handrail.conversation.blocks import Json, Text, ToolReference, ToolResult, UserBlock
from handrail.conversation.messages import Message, UserMessage
from handrail.dispatch.gate import Rails
from handrail.errors import HandrailError, ToolDefinitionError
from handrail.loop.run_config import StructuredOutput
from handrail.session.late_hooks import LateHooks
from handrail.session.tools import builtin_names
from handrail.tools.pool import AnyTool, DenyFilter, deny_nothing
from handrail.tools.tool import McpInfo, Tool

if TYPE_CHECKING:
    from pydantic import BaseModel

    from handrail.hooks.runner import Hooks
    from handrail.permissions.policy import Policy

Prompt: TypeAlias = str | UserMessage | Sequence[UserBlock]

SYSTEM_PROMPT = (
    "You are an agent that works for a person on their machine. Use the tools you were given; "
    "look before you act, and say in the end what you did."
)


def found_tools(messages: Sequence[Message]) -> list[str]:
    """The tools that were held back and that the model has found; what it was sent in full stays so."""
    return [
        part.name
        for message in messages
        if isinstance(message, UserMessage)
        for block in message.content
        if isinstance(block, ToolResult)
        for part in block.content
        if isinstance(part, ToolReference)
    ]


def hooked(rails: Rails, hooks: "Hooks | LateHooks", env: Mapping[str, str]) -> Rails:
    if isinstance(hooks, LateHooks):
        return replace(rails, hooks=hooks)
    made: Rails = import_module("handrail.session.hooks").hooked(rails, hooks, env)
    return made


def message_of(prompt: Prompt) -> UserMessage:
    match prompt:
        case UserMessage():
            return prompt
        case str():
            return UserMessage((Text(prompt),))
        case _:
            return UserMessage(tuple(prompt))


def checked_tools(tools: tuple[AnyTool, ...]) -> tuple[AnyTool, ...]:
    taken = set(builtin_names())
    for tool in tools:
        if not isinstance(tool, Tool):
            raise ToolDefinitionError(f"{tool!r} is not a tool. Put @tool above a function, or subclass Tool.")
        if tool.name in taken:
            raise ToolDefinitionError(f"There are two tools called {tool.name!r}. Give yours another name.")
        taken.add(tool.name)
    return tools


def deferrable(tool: AnyTool) -> bool:
    return tool.should_defer or tool.mcp is not None


def left_out(builtin_tools: bool | Iterable[str], policy: "Policy | None") -> Callable[[str, McpInfo | None], bool]:
    """Built-in tools that are not wanted, and every tool that a rule denies as a whole."""
    every = builtin_names()
    if isinstance(builtin_tools, bool):
        out = frozenset[str]() if builtin_tools else every
    else:
        wanted = frozenset(builtin_tools)
        if unknown := sorted(wanted - every):
            raise ToolDefinitionError(
                f"There is no built-in tool {unknown[0]!r}. There are {', '.join(sorted(every))}."
            )
        out = every - wanted
    return partial(is_denied, out, policy)


def always(policy: "Policy | None") -> "Callable[[], Policy] | None":
    return None if policy is None else lambda: policy


def is_denied(names: frozenset[str], policy: "Policy | None", name: str, mcp: McpInfo | None) -> bool:
    return name in names or (policy is not None and policy.denies_tool(name, mcp))


def either(one: DenyFilter, other: DenyFilter) -> DenyFilter:
    return one if other is deny_nothing else lambda name, mcp: one(name, mcp) or other(name, mcp)


def prompt_parts(system_prompt: str | Sequence[str] | None) -> tuple[str, ...]:
    match system_prompt:
        case None:
            return (SYSTEM_PROMPT,)
        case str():
            return (system_prompt,) if system_prompt else ()
        case _:
            return tuple(system_prompt)


def structured_output(output: "Json | type[BaseModel] | None") -> StructuredOutput | None:
    if output is None:
        return None
    if not isinstance(output, Mapping) and not hasattr(output, "model_json_schema"):
        raise HandrailError(
            f"output is {output!r}. Give a JSON Schema with an object at its root, or a Pydantic model."
        )
    # the validator costs start-up time that only those pay who want a structured answer
    made: StructuredOutput = import_module("handrail.loop.structured").JsonAnswer(output)
    return made

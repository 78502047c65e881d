"""What `Agent` is given, checked and made into a specification. Wrong arguments raise here, with what is expected."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from handrail.agents.definitions import definition_notes, parse_json
from handrail.agents.spec import AgentSpec
from handrail.config.flags import SettingsFlags
from handrail.conversation.blocks import Text, UserBlock
from handrail.conversation.messages import UserMessage
from handrail.errors import HandrailError, McpError, ToolDefinitionError
from handrail.hooks.events import EVENTS
from handrail.hooks.runner import Hooks
from handrail.lazy import lazy
from handrail.providers.choose import ModelOptions
from handrail.session.models.choose import Streaming
from handrail.session.tools import builtin_names
from handrail.session.transcript import TranscriptOptions
from handrail.tools.pool import AnyTool
from handrail.tools.tool import Tool, check_tool
from handrail.tools.wording import did_you_mean

if TYPE_CHECKING:
    from handrail.mcp import config as mcp_config
    from handrail.permissions import rules
else:
    mcp_config = lazy("handrail.mcp.config")
    rules = lazy("handrail.permissions.rules")

Prompt: TypeAlias = str | UserMessage | Sequence[UserBlock]

MODES = ("default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions")


def user_message(prompt: Prompt) -> UserMessage:
    """The message of a prompt, whatever form it has."""
    match prompt:
        case UserMessage():
            return prompt
        case str() if prompt.strip():
            return UserMessage((Text(prompt),))
        case [*blocks] if all(isinstance(block, UserBlock) for block in blocks):
            return UserMessage(tuple(blocks))
        case _:
            raise HandrailError(f"The prompt is {prompt!r}. Give a text, a UserMessage, or blocks such as Text.")


def split_model(model: str | Streaming | ModelOptions | None) -> tuple[ModelOptions, Streaming | None]:
    """The options that name a model, and the caller's own model if there is one."""
    match model:
        case None:
            return ModelOptions(), None
        case str() if model.strip():
            return ModelOptions(model=model), None
        case str():
            raise HandrailError(f"model is {model!r}. Name a model, or leave it out for the default.")
        case ModelOptions():
            return model, None
        case _:
            return ModelOptions(), model


def check_tools(tools: Iterable[AnyTool]) -> tuple[AnyTool, ...]:
    """The caller's own tools."""
    if isinstance(tools, Tool):
        raise HandrailError(f"tools is the tool {tools.name!r}. Give a list of tools: [{tools.name}].")
    if not isinstance(tools, Iterable):
        raise HandrailError(f"tools is {tools!r}. Give a list of tools.")
    given = tuple(tools)
    builtin = builtin_names()
    taken = set(builtin)
    for tool in given:
        if isinstance(tool, str) and tool in builtin:
            raise ToolDefinitionError(
                f"tools has the name of the built-in tool {tool!r}. tools is for your own; builtin_tools=[{tool!r}] "
                "leaves out the other built-in ones."
            )
        check_tool(tool)
        if tool.name in taken:
            raise ToolDefinitionError(f"There are two tools called {tool.name!r}. Give yours another name.")
        taken.add(tool.name)
    return given


def check_agents(agents: Iterable[AgentSpec], tools: Iterable[AnyTool] = ()) -> dict[str, Any]:
    """The kinds of sub-agents that the caller describes, by name. `tools` are the caller's own."""
    own = [tool.name for tool in tools]
    if not isinstance(agents, Iterable):
        raise HandrailError(f"agents is {agents!r}. Give a list of AgentSpec.")
    found: dict[str, Any] = {}
    for each in agents:
        check_type("agents", each, AgentSpec, 'a list of AgentSpec(name="...", description="...", prompt="...")')
        if isinstance(definition := parse_json(each.name, each.as_json(), "agents"), str):
            raise HandrailError(definition)
        for problem in definition_notes(definition, own):
            raise HandrailError(f"agents: {problem}")
        if each.name in found:
            raise HandrailError(f"agents has two called {each.name!r}. Give one of them another name.")
        found[each.name] = each.as_json()
    return found


def check_builtin_tools(wanted: bool | Iterable[str]) -> tuple[str, ...] | None:
    """The names of the built-in tools that are wanted; None = all."""
    if isinstance(wanted, bool):
        return None if wanted else ()
    if isinstance(wanted, str):
        raise HandrailError(f"builtin_tools is {wanted!r}. Give True, False or a list of names: [{wanted!r}].")
    if not isinstance(wanted, Iterable):
        raise HandrailError(f"builtin_tools is {wanted!r}. Give True, False or a list of names.")
    every, names = builtin_names(), tuple(wanted)
    if unknown := sorted({*names} - every):
        hint = did_you_mean(unknown[0], every) or f" There are {', '.join(sorted(every))}."
        raise ToolDefinitionError(f"There is no built-in tool {unknown[0]!r}.{hint}")
    return names


def settings_flags(
    settings: bool | str | Path | Mapping[str, Any],
    mode: str,
    allow: Iterable[str],
    ask: Iterable[str],
    deny: Iterable[str],
) -> SettingsFlags:
    """The rules that the caller gives, and which settings files count beside them."""
    if mode not in ("", *MODES):
        raise HandrailError(f"mode is {mode!r}. Choose one of {', '.join(MODES)}.")
    expected = "True, False, the path of a file, or its content as a dictionary or as JSON"
    check_type("settings", settings, (bool, str, Path, Mapping), expected)
    file = "" if isinstance(settings, bool) else str(settings)
    if isinstance(settings, Mapping):
        try:
            file = json.dumps(dict(settings))
        except (TypeError, ValueError) as error:
            raise HandrailError(
                f"settings cannot be written as JSON: {error}. Give texts, numbers and lists."
            ) from error
    if file and not file.lstrip().startswith("{") and not Path(file).is_file():
        raise HandrailError(f"settings is {file!r}, which is not a file. Give {expected}.")
    given = SettingsFlags(
        settings=file,
        mode=mode,
        allow_bypass=mode == "bypassPermissions",
        allowed=check_rules("allow", allow),
        ask=check_rules("ask", ask),
        disallowed=check_rules("deny", deny),
        rules_from="program",
        managed_policy=settings is not False,
    )
    return given if settings is True else replace(given, sources=())


def check_rules(name: str, texts: Iterable[str]) -> tuple[str, ...]:
    """The rule texts; a HandrailError says what is wrong with one that is not understood."""
    if isinstance(texts, str):
        raise HandrailError(f"{name} is {texts!r}. Give a list of rules: [{texts!r}].")
    if not isinstance(texts, Iterable):
        raise HandrailError(f"{name} is {texts!r}. Give a list of rules.")
    given = tuple(texts)
    for text in given:
        if not isinstance(text, str):
            raise HandrailError(f"{name} holds {text!r}. Rules are texts such as 'Bash(git status)' or 'Read(.env)'.")
        found = rules.parse_rule(text, rules.Behaviour(name))
        if isinstance(found, rules.RuleProblem):
            raise HandrailError(f"{name} holds {text!r}: {found.message}.")
    return given


def check_can_use_tool(can_use_tool: Any) -> Any:
    """A function, or None."""
    if can_use_tool is not None and not callable(can_use_tool):
        raise HandrailError(f"can_use_tool is {can_use_tool!r}. Give a function of (tool_name, input, question).")
    return can_use_tool


def check_contents(tools: Iterable[AnyTool], flags: SettingsFlags) -> None:
    """Refuse contents of rules that a tool cannot compare: an allow rule never matches then, and others always do."""
    mute = {tool.name for tool in tools if not tool.subject and not _matches_itself(type(tool))}
    for name, texts in (("allow", flags.allowed), ("ask", flags.ask), ("deny", flags.disallowed)):
        for text in texts:
            rule = rules.parse_rule(text, rules.Behaviour(name))
            if not isinstance(rule, rules.Rule) or rule.tool not in mute or rule.spec is None:
                continue
            if not rules.PARAMETER.match(rule.spec):
                raise HandrailError(
                    f"{name} holds {text!r}, but {rule.tool} does not say which parameter such rules are about. "
                    'Write @tool(subject="..."), or the rule without its brackets.'
                )


def _matches_itself(kind: type[Tool[Any]]) -> bool:
    return kind.permission_matcher is not Tool.permission_matcher or kind.subject_text is not Tool.subject_text


def check_hooks(hooks: Any) -> Any:
    """Hooks by event, or hooks that were made already."""
    if isinstance(hooks, Hooks):
        return hooks
    check_type("hooks", hooks, Mapping, 'functions by event, for example {"PreToolUse": [check]}, or Hooks(...)')
    return {event: _check_callbacks(event, given) for event, given in hooks.items()}


def _check_callbacks(event: str, given: Any) -> tuple[Any, ...]:
    if event not in EVENTS:
        hint = did_you_mean(event, EVENTS) or f" There are {', '.join(EVENTS)}."
        raise HandrailError(f"hooks has {event!r}, which is not an event.{hint}")
    functions = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    if wrong := [each for each in functions if not callable(each) and not hasattr(each, "function")]:
        raise HandrailError(
            f"hooks[{event!r}] has {wrong[0]!r}. Give functions, or HookCallback(function, ...). Hooks in the form of "
            "the settings are given as hooks=Hooks({...})."
        )
    return functions


def transcript_options(session: bool | str | None) -> TranscriptOptions:
    """Whether and as what the conversation is kept."""
    match session:
        case None | False:
            return TranscriptOptions(keep=False)
        case True:
            return TranscriptOptions()
        case str() if session:
            return TranscriptOptions(resume_or_create=session)
        case _:
            raise HandrailError(f"session is {session!r}. Give True, False, or the id of a session.")


def check_output(output: Any) -> Any:
    """A JSON Schema or a Pydantic model."""
    if output is not None and not isinstance(output, Mapping) and not hasattr(output, "model_json_schema"):
        raise HandrailError(
            f"output is {output!r}. Give a JSON Schema with an object at its root, or a Pydantic model."
        )
    return output


def check_type(name: str, value: object, expected: type | tuple[type, ...], example: str) -> None:
    """Raise if an argument is of another type."""
    if not isinstance(value, expected):
        raise HandrailError(f"{name} is {value!r}. Give {example}.")


def check_folder(cwd: Path | str | None) -> Path:
    """The working folder."""
    folder = Path(cwd if cwd is not None else Path.cwd()).absolute()
    if not folder.is_dir():
        raise HandrailError(f"cwd is {str(cwd)!r}, which is not a folder. Give a folder that exists.")
    return folder


def check_servers(servers: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Configurations of MCP servers by name."""
    given = {} if servers is None else servers
    example = '{"db": {"command": "uvx", "args": ["db-mcp"]}}'
    check_type("mcp_servers", given, Mapping, f"configurations by name, for example {example}")
    for name, config in given.items():
        check_type(f"mcp_servers[{name!r}]", config, Mapping, f"a configuration as in {example}")
        try:
            mcp_config.resolve_server(name, config, {}, "")
        except McpError as error:
            raise HandrailError(f"mcp_servers[{name!r}] cannot be used: {error}") from error
    return given


def variables(env: Mapping[str, str] | None, state_dir: Path | str | None) -> Mapping[str, str]:
    """The environment of an agent."""
    given = os.environ if env is None else env
    check_type("env", given, Mapping, 'variables by name, for example {**os.environ, "HOME": "/tmp"}')
    if state_dir is None:
        return given
    if not isinstance(state_dir, str | Path):
        raise HandrailError(f"state_dir is {state_dir!r}. Give a folder.")
    return {**given, "HANDRAIL_STATE_DIR": str(Path(state_dir).absolute())}

"""
What a typed command, or an `@file` in a prompt, brings along: commands that run and files that are read, both as calls
of tools under the rules of the session, and rules that hold for this one turn.

Nothing of a project's command runs or allows anything before its folder is trusted.
"""

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from handrail.config.needs_trust import command_items, fingerprint, folder_of
from handrail.config.places import SettingsPlaces
from handrail.config.snapshot import TRUSTED
from handrail.config.trust import TrustStore
from handrail.conversation.blocks import Image, Json, Text, ToolUse
from handrail.conversation.messages import Attachment, UserMessage
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.schedule import Scheduling
from handrail.extensions.command_text import CommandText, fill_command
from handrail.extensions.commands import CommandFile
from handrail.hooks.texts import reminder
from handrail.loop.complete_prompt import CompletedPrompt, PromptRefusal
from handrail.loop.events import Denial
from handrail.permissions.policy import Policy
from handrail.permissions.rules import MCP, Behaviour, Rule, RuleProblem, RuleSource, parse_rule
from handrail.records import record
from handrail.session.conversation import Conversation
from handrail.session.settings.load import NEXT_MOVE
from handrail.session.settings.session_settings import SessionSettings
from handrail.session.tools import builtin_names
from handrail.tools.abort import AbortSignal
from handrail.tools.context import RunContext
from handrail.tools.outcome import Cause, Outcome, Status
from handrail.tools.pool import Pool

SHELLS = {"bash": "Bash", "powershell": "PowerShell"}
MAX_FILES = 20
MAX_CHARACTERS = 200_000
"""The most characters of all files that one prompt brings along."""
ISOLATED = Scheduling(sibling_errors="isolate")


@record
class CommandTurn:
    """One use of a command: its text for these words, and whether its file is trusted."""

    command: CommandFile
    text: CommandText
    is_trusted: bool


def open_turn(command: CommandFile, words: str, settings: SessionSettings, variables: Mapping[str, str]) -> CommandTurn:
    """A use of a command in a session."""
    own = {"CLAUDE_SKILL_DIR": str(Path(command.file).parent), "HANDRAIL_SKILL_DIR": str(Path(command.file).parent)}
    text = fill_command(command.body, words, command.arguments, {**variables, **own})
    return CommandTurn(command, text, is_trusted(command, settings))


def is_trusted(command: CommandFile, settings: SessionSettings) -> bool:
    """Whether what a command runs and allows counts: it is the user's, or is what was trusted in the project."""
    if command.source != "project":
        return True
    loaded, store = settings.loaded.settings, TrustStore(settings.places.state)
    return all(
        item in loaded.items
        and loaded.trust_by_folder.get(item.folder) == TRUSTED
        # a script that it runs may have changed since the settings were loaded
        and any(
            fingerprint(item, item.folder) in each
            for each in (loaded.agreed.get(item.folder), store.record_of(item.folder))
            if each is not None
        )
        for item in command_items((command,), settings.places.folders)
    )


def project_of(command: CommandFile, places: SettingsPlaces) -> str:
    """The project's folder, as a command may name it: for the project's own, that which its file belongs to."""
    return folder_of(command.file, places.folders) if command.source == "project" else places.cwd


def turn_variables(command: CommandFile, places: SettingsPlaces, session_id: str, effort: str | None) -> dict[str, str]:
    """What a command's text may name as `${CLAUDE_...}` or `${HANDRAIL_...}`."""
    values = {"PROJECT_DIR": project_of(command, places), "SESSION_ID": session_id, "EFFORT": effort or ""}
    if command.root:
        data = places.state / "plugins" / "data" / command.name.partition(":")[0]
        values |= {"PLUGIN_ROOT": command.root, "PLUGIN_DATA": str(data)}
    return {f"{maker}_{name}": value for maker in ("CLAUDE", "HANDRAIL") for name, value in values.items()}


def trust_note(settings: SessionSettings) -> str:
    """Why a project's command is not trusted, and what to do."""
    known = settings.loaded.settings.trust != "untrusted"
    why = "it changed since this folder was trusted" if known else "this folder is not trusted"
    return f"{why}. {NEXT_MOVE}"


async def complete_command(
    turn: CommandTurn,
    message: UserMessage,
    conversation: Conversation,
    settings: SessionSettings,
    signal: AbortSignal,
    *,
    run: RunContext | None = None,
) -> CompletedPrompt | PromptRefusal:
    """The prompt that a command stands for. What is not allowed is not run, and then the model is not asked."""
    command, commands = turn.command, turn.text.commands
    outputs: list[str] = []
    if commands and settings.loaded.settings.get("disableSkillShellExecution"):
        outputs = ["[not run: disableSkillShellExecution is set in the settings]"] * len(commands)
    elif commands and not turn.is_trusted:
        listed = ", ".join(f"`{each.line}`" for each in commands)
        return PromptRefusal(f"/{command.name} runs {listed}, and nothing was run: {trust_note(settings)}")
    elif commands:
        tool = SHELLS.get(command.shell, command.shell)
        uses = [new_call(tool, {"command": each.line}) for each in commands]
        for outcome in await run_calls(uses, conversation, signal, run):
            if was_refused(outcome):
                return _refusal(command, outcome)
            outputs.append(outcome.result.text)
    files, warnings = await read_files(turn.text.files, conversation, settings.places.home, signal, run)
    whole = replace(message, content=(Text(turn.text.with_outputs(outputs)), *message.content[1:]))
    if not turn.is_trusted and (left := [name for name in command.widens if name != "runs"]):
        warnings.append(f"{command.shown}: its {' and '.join(left)} had no effect: {trust_note(settings)}")
    return CompletedPrompt(whole, tuple(files), tuple(warnings))


async def complete_mentions(
    paths: Sequence[str], message: UserMessage, conversation: Conversation, home: str, signal: AbortSignal
) -> CompletedPrompt:
    """A prompt with the files that it names."""
    files, warnings = await read_files(paths, conversation, home, signal)
    return CompletedPrompt(message, tuple(files), tuple(warnings))


@record
class TurnRules:
    """The rules that hold for the turn of a command, and why others of it do not, by what they would do."""

    rules: tuple[Rule, ...]
    unusable_limits: tuple[str, ...]
    unusable_grants: tuple[str, ...]


def turn_rules(turn: CommandTurn, settings: SessionSettings, known: Iterable[str]) -> TurnRules:
    """The rules of a command for its turn. Limits always count; `known` are the names of the tools there are."""
    loaded = settings.loaded
    may_allow = turn.is_trusted and not loaded.managed_rules_only and not loaded.settings.doubtful
    source, names = RuleSource("command", turn.command.shown), frozenset(known) | builtin_names()
    denied = [_parse(text, Behaviour.DENY, source, names) for text in turn.command.disallowed]
    allowed = [_parse(text, Behaviour.ALLOW, source, names) for text in turn.command.allowed if may_allow]
    return TurnRules(
        tuple(rule for rule in (*denied, *allowed) if isinstance(rule, Rule)),
        tuple(problem for problem in denied if isinstance(problem, str)),
        tuple(problem for problem in allowed if isinstance(problem, str)),
    )


def _parse(text: str, kind: Behaviour, source: RuleSource, names: frozenset[str]) -> Rule | str:
    rule = parse_rule(text, kind, source)
    if isinstance(rule, RuleProblem):
        return f"{text!r} - {rule.message}"
    is_known = "*" in rule.tool or rule.tool.startswith(MCP) or rule.tool in names
    return rule if is_known else f"{text!r} - there is no tool of this name"


def with_turn_rules(rules: Sequence[Rule]) -> Callable[[Policy], Policy]:
    """Adds rules to a policy."""
    return lambda policy: policy.with_rules((*policy.rules, *policy.problems, *rules))


def new_call(tool: str, values: Json) -> ToolUse:
    """A call that no model asked for, with an id of its own: big results are kept by it."""
    return ToolUse(f"call_{os.urandom(12).hex()}", tool, values)


async def run_calls(
    uses: Sequence[ToolUse],
    conversation: Conversation,
    signal: AbortSignal,
    run: RunContext | None = None,
    pool: Pool | None = None,
) -> list[Outcome]:
    """
    Run calls that no model asked for, under the rules, hooks and limits of those that it asks for.

    `run` is that of the agent for which they run, else that of the conversation; `pool` holds their tools.
    """
    state, config = conversation.state, conversation.config
    run = replace(run or state.context, abort=signal, history=state.history.messages)
    tools = state.catalog.pool if pool is None else pool
    async with ToolExecutor(tools, run, state.store, rails=config.rails, scheduling=ISOLATED) as executor:
        for use in uses:
            executor.add(use)
        return [outcome async for outcome in executor.rest()]


def was_refused(outcome: Outcome) -> bool:
    """Whether a call never ran, or a hook wants nothing to follow it."""
    never = (Cause.UNKNOWN_TOOL, Cause.INVALID_INPUT, Cause.REFUSED_INPUT, Cause.HOOK_STOPPED)
    return outcome.status is Status.DENIED or outcome.cause in never or outcome.stop is not None


def _refusal(command: CommandFile, outcome: Outcome) -> PromptRefusal:
    line = str(outcome.use.input.get("command", ""))
    if outcome.status is not Status.DENIED or outcome.decision is None:
        return PromptRefusal(f"`{line}` of /{command.name} was not run: {outcome.stop or outcome.result.text}")
    reason, rule = outcome.decision.reason, f"{outcome.use.name}({line})"
    text = (
        f"Shell command permission check failed for /{command.name}: `{line}` was not run: {reason}. "
        f"Allow it with --allowedTools {rule!r}, or with `allowed-tools: {rule}` in {command.shown}."
    )
    return PromptRefusal(text, (Denial(outcome.use, reason),))


async def read_files(
    paths: Sequence[str], conversation: Conversation, home: str, signal: AbortSignal, run: RunContext | None = None
) -> tuple[list[Attachment], list[str]]:
    """What the files and folders of these names hold, for the model, and what a person should know about them."""
    context = conversation.state.context
    reads = list(_reads(paths, context.cwd, home, context.options.mcp_servers()))
    names = {use.id: path for path, use in reads}
    notes: list[Attachment] = []
    warnings = [f"@{path} is left out: a prompt brings {MAX_FILES} files at most" for path, _ in reads[MAX_FILES:]]
    room = MAX_CHARACTERS
    for outcome in await run_calls([use for _, use in reads[:MAX_FILES]], conversation, signal, run) if reads else ():
        name, text = names[outcome.use.id], outcome.result.text
        if outcome.status is Status.DENIED and outcome.decision:
            warnings.append(f"@{name} was not read: {outcome.decision.reason}")
            notes.append(_note(f"The user's message names @{name}. It was not read: {outcome.decision.reason}."))
        elif len(text) > room:
            warnings.append(f"@{name} is left out: a prompt brings {MAX_CHARACTERS:,} characters of files at most")
            notes.append(_note(f"The user's message names @{name}. It is long: use {outcome.use.name} to see it."))
        else:
            room -= len(text)
            images = tuple(block for block in outcome.result.content if isinstance(block, Image))
            notes.append(_note(f"The user's message names @{name}. {outcome.use.name} shows:\n{text}", images))
    return notes, warnings


def _reads(paths: Iterable[str], cwd: Path, home: str, servers: Container[str]) -> Iterator[tuple[str, ToolUse]]:
    """Each path with the call that shows what it names; an at sign before a word that is no file is just a word."""
    for path in paths:
        server, colon, uri = path.partition(":")
        if colon and server in servers:
            yield path, new_call("ReadMcpResourceTool", {"server": server, "uri": uri})
            continue
        full = str(Path(cwd, home + path[1:] if path.startswith("~/") else path))
        if os.path.isdir(full):  # noqa: PTH112  # no error for a name that is too long
            yield path, new_call("Glob", {"path": full})
        elif os.path.lexists(full):
            yield path, new_call("Read", {"file_path": full})


def _note(text: str, images: tuple[Image, ...] = ()) -> Attachment:
    return Attachment("mention", (Text(reminder(text)), *images))

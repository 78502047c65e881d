"""
Slash commands in prompts: built-in ones, and those defined in files.

    /compact keep the file names    the conversation is summarised
    /deploy staging                 the text of `deploy.md` goes to the model
    Explain @src/app.py             goes to the model with that file
    What is in /etc?                goes to the model as it is

What is built in goes before what is written down: a folder cannot change what `/clear` means.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from handrail.builtin.services import ToolServices
from handrail.conversation.blocks import Text
from handrail.conversation.messages import Attachment, UserMessage
from handrail.extensions.commands import NAME, CommandFile
from handrail.hooks.texts import reminder
from handrail.lazy import lazy, lazy_pattern
from handrail.loop.complete_prompt import CompletedPrompt, CompletePrompt, PromptRefusal
from handrail.loop.events import SYNTHETIC, BlockComplete, ConversationReset, LoopEvent, RunEnded, RunStarted
from handrail.loop.memory import imports
from handrail.loop.run import Run
from handrail.loop.run_hooks import Expansion
from handrail.loop.state import Move, Why
from handrail.loop.usage import total_dollars
from handrail.records import record
from handrail.session.background import running_tasks
from handrail.session.conversation import Conversation
from handrail.session.models.choose import cost_for
from handrail.session.models.options import named_model
from handrail.session.settings.session_settings import SessionSettings
from handrail.session.skills.notes import SessionSkills
from handrail.session.usage import SessionUsage
from handrail.tools.abort import AbortSignal
from handrail.transcripts.store import OpenTranscript
from handrail.transcripts.writer import new_id

if TYPE_CHECKING:
    from handrail.session import command_turn
    from handrail.session import skill_use as skill_uses
else:
    skill_uses = lazy("handrail.session.skill_use")
    command_turn = lazy("handrail.session.command_turn")  # it runs calls, and loads what decides about them

MCP = "mcp__"
CALLED = lazy_pattern(rf"/(?P<name>{NAME.pattern})(?:\s+(?P<words>.*))?", re.DOTALL)


class CommandSession(Protocol):
    """A session, as far as its slash commands are concerned."""

    id: str
    settings: SessionSettings
    conversation: Conversation
    usage: SessionUsage
    skills: SessionSkills

    transcript: OpenTranscript | None

    @property
    def services(self) -> Callable[[], ToolServices]: ...

    def context_usage(self) -> dict[str, Any]: ...

    async def begin_next(self) -> None: ...

    async def set_model(self, name: str) -> None: ...

    async def connect(self, *, patient: bool = False) -> None: ...

    def server_commands(self) -> "dict[str, BuiltIn]": ...


class SlashCommands:
    """The slash commands of a session; those that people wrote down count as they are when a prompt begins."""

    def __init__(self, session: CommandSession) -> None:
        self._session = session

    def by_name(self) -> "dict[str, CommandFile | BuiltIn]":
        """All commands that people may start, by name."""
        listed = {name: each for name, each in self._session.skills.all().items() if each.is_listed}
        return {**self._session.server_commands(), **listed, **BUILT_IN}

    async def begin(self, message: UserMessage) -> Run | Iterable[LoopEvent]:
        """What the prompt begins: a run, or the answer of a command that needs no model."""
        conversation = self._session.conversation
        called = match_command(message)
        servers = conversation.state.context.options.mcp_servers()
        if called["name"].startswith(MCP) if called else any(f"@{name}:" in _text(message) for name in servers):
            await self._session.connect(patient=True)  # its server may not be connected yet
        if called is None:
            return self._run_prompt(message)
        before = self._session.id
        if (
            built_in := BUILT_IN.get(called["name"]) or self._session.server_commands().get(called["name"])
        ) is not None:
            answer = await built_in.act(self._session, (called["words"] or "").strip(), self.by_name())
            return answer if isinstance(answer, Run) else self._tell(answer, message, before)
        command = self._session.skills.all().get(called["name"])
        if command is None:
            conversation.state.mailbox.note(self._unknown_note(called["name"]))
            return self._run_prompt(message)
        if not command.is_listed:
            text = f"/{command.name} is not for people: {command.shown} says `user-invocable: false`."
            return _text_events(conversation, message, text)
        if command.kind == "skill":
            fresh = self._session.skills.loader.read(command)
            if not isinstance(fresh, CommandFile):
                return _text_events(conversation, message, str(fresh))
            command = fresh
        return self._run_command(command, called, message)

    def _tell(self, answer: str, message: UserMessage, before: str) -> tuple[LoopEvent, ...]:
        """What a command answers; first, that the session has changed, if it has."""
        session = self._session
        reset = (ConversationReset(session.id, before),) if session.id != before else ()
        return (*reset, *_text_events(session.conversation, message, answer))

    def _run_prompt(self, message: UserMessage) -> Run:
        """Work on a prompt as it is, with the files that it names."""
        conversation = self._session.conversation
        texts = (block.text for block in message.content if isinstance(block, Text))
        paths = tuple(dict.fromkeys(path for text in texts for path in imports(text)))
        if not paths:
            return conversation.run(message)
        home = self._session.settings.places.home
        complete = partial(command_turn.complete_mentions, paths, message, conversation, home)
        return conversation.run(message, config=replace(conversation.config, complete_prompt=complete))

    def _run_command(self, command: CommandFile, called: re.Match[str], message: UserMessage) -> Run:
        session, conversation, words = self._session, self._session.conversation, called["words"] or ""
        places, effort = session.settings.places, conversation.config.options.effort
        variables = command_turn.turn_variables(command, places, session.id, effort)
        turn = command_turn.open_turn(command, words, session.settings, variables)
        shown = turn.text.with_outputs([f"!`{each.line}`" for each in turn.text.commands])
        whole = replace(message, content=(Text(shown), *message.content[1:]))
        loader = session.skills.loader
        complete: CompletePrompt
        if command.context == "fork":
            complete = partial(loader.fork, command, words)
        elif command.kind == "skill":
            whole = message
            complete = partial(self._load_skill, turn, message)
        else:
            complete = partial(loader.complete, turn, whole)
        config = replace(conversation.config, complete_prompt=complete)
        if turn.is_trusted:
            name = named_model(command.model, config.model_name, session.settings.loaded)
            if name != config.model_name:
                config = replace(config, model_name=name, cost=cost_for(name))
            if command.effort:
                config = replace(config, options=replace(config.options, effort=command.effort))  # type: ignore[arg-type]  # one of EFFORTS
        expansion = Expansion(command.name, words, command.file, called[0])
        return conversation.run(whole, config=config, expansion=expansion)

    async def _load_skill(
        self, turn: "command_turn.CommandTurn", message: UserMessage, signal: AbortSignal
    ) -> CompletedPrompt | PromptRefusal:
        """A skill that a person starts: its text stands beside what they typed."""
        completed = await self._session.skills.loader.complete(turn, message, signal)
        if isinstance(completed, PromptRefusal):
            return completed
        note = skill_uses.skill_attachment(turn.command, skill_uses.text_of(completed))
        return replace(completed, message=message, notes=(note, *completed.notes))

    def _unknown_note(self, name: str) -> Attachment:
        known = ", ".join(f"/{each}" for each in self.by_name())
        return Attachment("command", (Text(reminder(f"There is no command /{name}. The commands are: {known}.")),))


def match_command(message: UserMessage) -> re.Match[str] | None:
    """The `name` and the `words` of a command at the beginning of a message, if it begins with one."""
    first = message.content[0] if message.content else None
    return CALLED.fullmatch(first.text.strip()) if isinstance(first, Text) else None


def _text(message: UserMessage) -> str:
    return "\n".join(block.text for block in message.content if isinstance(block, Text))


def _text_events(conversation: Conversation, message: UserMessage, text: str) -> tuple[LoopEvent, ...]:
    """What readers expect of a prompt, for words that no model said."""
    names = tuple(tool.name for tool in conversation.tools.listed)
    state = conversation.state
    return (
        RunStarted(message, conversation.config.model_name, names, state.context.cwd, state.chain),
        BlockComplete(f"msg_{new_id()}", SYNTHETIC, Text(text), 0),
        RunEnded(Move.STOPPED, Why.COMPLETED, text),
    )


Listed: TypeAlias = "Mapping[str, CommandFile | BuiltIn]"
Act: TypeAlias = Callable[[CommandSession, str, Listed], Awaitable[str | Run]]
"""Does what a command says with the words behind it; its answer, or the run that will give one."""


@record
class BuiltIn:
    """A command that handrail carries out itself."""

    description: str
    act: Act
    hint: str = ""


async def _clear(session: CommandSession, _words: str, _listed: Listed) -> str:
    before, is_kept = session.id, session.transcript is not None and bool(session.conversation.messages)
    ended = len(running_tasks(session.services))
    await session.begin_next()
    tasks = f" {ended} background {'task' if ended == 1 else 'tasks'} ended with the one before." if ended else ""
    kept = f" What was said before is kept: handrail --resume {before}" if is_kept else ""
    return f"A new session begins: {session.id}.{tasks}{kept}"


async def _compact(session: CommandSession, words: str, _listed: Listed) -> Run:
    return session.conversation.compact(words)


async def _context(session: CommandSession, _words: str, _listed: Listed) -> str:
    usage = session.context_usage()
    lines = [f"{usage['model']}: {usage['totalTokens']:,} of {usage['maxTokens']:,} tokens ({usage['percentage']} %)"]
    lines += [f"memory: {each['path']} (about {each['tokens']:,} tokens)" for each in usage["memoryFiles"]]
    lines += [f"tools: {len(session.conversation.tools.active)}, of servers {len(usage['mcpTools'])}"]
    return "\n".join(lines)


async def _cost(session: CommandSession, _words: str, _listed: Listed) -> str:
    spent = session.usage.spent
    if not spent:
        return "Nothing was asked of a model yet."
    bill = total_dollars(spent.values())
    lines = ["the price is not known" if bill is None else f"{bill:.4f} dollars"]
    for model, used in spent.items():
        cached = f"{used.cache_read_tokens:,} read from and {used.cache_write_tokens:,} written to the cache"
        lines.append(f"{model}: {used.input_tokens:,} tokens in, {used.output_tokens:,} out, {cached}")
    return "\n".join(lines)


async def _model(session: CommandSession, words: str, _listed: Listed) -> str:
    if words:
        name = words.strip("\"' ")
        if not name:
            return f"{words} is not the name of a model. /model default goes back to the first one."
        await session.set_model("" if name == "default" else name)
    return f"The model is {session.conversation.config.model_name}."


async def _help(_session: CommandSession, _words: str, listed: Listed) -> str:
    return "\n".join(f"/{name} {each.hint}".rstrip() + f": {each.description}" for name, each in listed.items())


BUILT_IN = {
    "clear": BuiltIn("Start a new, empty session", _clear),
    "compact": BuiltIn("Replace the conversation with a summary", _compact, "[what to keep]"),
    "context": BuiltIn("Show how full the context window is", _context),
    "cost": BuiltIn("Show the tokens and cost so far", _cost),
    "help": BuiltIn("List the commands", _help),
    "model": BuiltIn("Show or change the model", _model, "[name]"),
    "usage": BuiltIn("Show the tokens and cost so far", _cost),
}

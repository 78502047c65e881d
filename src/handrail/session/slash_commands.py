"""
Slash commands in prompts: those that are built in, and those that people wrote down.

    /compact keep the file names    the conversation is summarised
    /deploy staging                 the text of `deploy.md` goes to the model
    What is in /etc?                goes to the model as it is

What is built in goes before what is written down: a folder cannot change what `/clear` means.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias

from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.loop.events import SYNTHETIC, BlockComplete, LoopEvent, RunEnded, RunStarted
from handrail.loop.run import Run
from handrail.loop.state import Move, Why
from handrail.loop.usage import total_dollars
from handrail.records import record
from handrail.session.conversation import Conversation
from handrail.session.slash_files import CommandFile, expand_command, match_command
from handrail.session.usage import SessionUsage
from handrail.transcripts.writer import new_id


class CommandSession(Protocol):
    """A session, as far as its slash commands are concerned."""

    conversation: Conversation
    usage: SessionUsage

    def context_usage(self) -> dict[str, Any]: ...

    async def set_model(self, name: str) -> None: ...


class SlashCommands:
    """The slash commands of a session. `files` are those that people wrote down, by name."""

    def __init__(self, session: CommandSession, files: Mapping[str, CommandFile]) -> None:
        self._session = session
        self._files = files

    def by_name(self) -> "dict[str, CommandFile | BuiltIn]":
        """All commands, by name."""
        return {**self._files, **BUILT_IN}

    async def begin(self, message: UserMessage) -> Run | Iterable[LoopEvent]:
        """What the prompt begins: a run, or the answer of a command that needs no model."""
        conversation = self._session.conversation
        called = match_command(message)
        command = BUILT_IN.get(called["name"]) if called else None
        if called is None or command is None:
            whole, expansion = expand_command(message, self._files)
            return conversation.run(whole, expansion=expansion)
        answer = await command.act(self._session, (called["words"] or "").strip(), self.by_name())
        return answer if isinstance(answer, Run) else _text_events(conversation, message, answer)


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
    await session.conversation.clear()
    session.usage.tokens = 0
    return "The conversation begins anew."


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
        await session.set_model("" if words == "default" else words)
    return f"The model is {session.conversation.config.model_name}."


async def _help(_session: CommandSession, _words: str, listed: Listed) -> str:
    return "\n".join(f"/{name} {each.hint}".rstrip() + f": {each.description}" for name, each in listed.items())


BUILT_IN = {
    "clear": BuiltIn("Begin the conversation anew", _clear),
    "compact": BuiltIn("Put a summary in the place of the conversation", _compact, "[what matters in it]"),
    "context": BuiltIn("How full the model's window is", _context),
    "cost": BuiltIn("What was used so far", _cost),
    "help": BuiltIn("The commands there are", _help),
    "model": BuiltIn("Which model is asked, or ask another one", _model, "[name]"),
    "usage": BuiltIn("What was used so far", _cost),
}

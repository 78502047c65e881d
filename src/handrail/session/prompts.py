"""
Prompts of a conversation: words for the model, commands that people wrote down, and those that are done right here.

    /compact keep the file names    the conversation is summarised
    /deploy staging                 the text of `deploy.md` goes to the model
    What is in /etc?                goes to the model as it is

What is built in goes before what is written down: a folder cannot change what `/clear` means.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.loop.compaction.stubs import estimate
from handrail.loop.events import (
    SYNTHETIC,
    BlockComplete,
    Compacted,
    LoopEvent,
    MessageComplete,
    RunEnded,
    RunStarted,
)
from handrail.loop.run import Run
from handrail.loop.state import Move, Why
from handrail.loop.usage import ModelUsage, total_dollars
from handrail.loop.windows import window_of
from handrail.records import record
from handrail.session.slash_files import CALLED, Command, expanded, find_commands
from handrail.session.work import Worker
from handrail.transcripts.writer import new_id


class Prompts:
    """Works on the prompts of one conversation. Without `slash` there are no commands in them."""

    def __init__(self, worker: Worker, *, slash: bool = True) -> None:
        self.worker = worker
        self.tokens = 0
        """What the newest request and its answer filled of the window."""
        self.spent: dict[str, ModelUsage] = {}
        self.commands: Mapping[str, Command] = (
            find_commands(worker.cwd, worker.live.loaded.env, worker.sources) if slash else {}
        )
        self.built_in: Mapping[str, BuiltIn] = {each.name: each for each in BUILT_IN} if slash else {}

    def listed(self) -> "dict[str, Command | BuiltIn]":
        """All commands, by name."""
        return {**self.commands, **self.built_in}

    def facts(self) -> dict[str, Any]:
        """What is true of the conversation when a prompt of it begins."""
        worker = self.worker
        servers = worker.servers.status() if worker.servers else ()
        return {
            "mcp_servers": [{"name": each["name"], "status": each["status"]} for each in servers],
            "slash_commands": list(self.listed()),
            "agents": list(worker.kinds()),
            "permissionMode": worker.mode,
            "apiKeySource": worker.key_source,
        }

    async def run(self, message: UserMessage, *, literal: bool = False) -> AsyncGenerator[LoopEvent, None]:
        """Work on a prompt. `literal`: no commands are to be found in it."""
        called = None if literal else _called(message)
        act = self.built_in.get(called["name"]) if called else None
        if called is None or act is None:
            whole, expansion = expanded(message, {} if literal else self.commands)
            made: str | Run = self.worker.agent.run(whole, expansion=expansion)
        else:
            made = await act.act(self, (called["words"] or "").strip())
        if isinstance(made, str):
            for event in self._said(message, made):
                yield event
            return
        try:
            async for event in made:
                self._note(event)
                yield event
        finally:
            await made.aclose()
            await self.worker.close_spare_models()

    def usage(self) -> dict[str, Any]:
        """How full the model's window is, and what of it is known."""
        agent = self.worker.agent
        window = window_of(agent.model)
        tokens = self.tokens or estimate(agent.messages)  # a conversation that goes on was not asked about here yet
        return {
            "categories": [
                {"name": "Messages", "tokens": tokens, "color": "text"},
                {"name": "Free space", "tokens": max(window - tokens, 0), "color": "inactive"},
            ],
            "totalTokens": tokens,
            "maxTokens": window,
            "rawMaxTokens": window,
            "percentage": round(100 * tokens / window, 1),
            "model": agent.model,
            "isAutoCompactEnabled": self.worker.compacts_itself,
            "memoryFiles": self.worker.memory_files(),
            "mcpTools": [{"name": t.name, "serverName": t.mcp.server} for t in agent.tools.listed if t.mcp],
            "agents": [{"agentType": name, "source": self.worker.kind_source(name)} for name in self.worker.kinds()],
            "gridRows": [],
        }

    def _note(self, event: LoopEvent) -> None:
        match event:
            case MessageComplete(usage=usage):
                self.tokens = usage.whole_input + usage.whole_output
            case Compacted():
                self.tokens = estimate(self.worker.agent.messages)
            case RunEnded(spent=spent):
                for model, used in spent.items():
                    self.spent[model] = self.spent.get(model, ModelUsage()).with_all(used)
            case _:
                pass

    def _said(self, message: UserMessage, text: str) -> tuple[LoopEvent, ...]:
        """What readers expect of a prompt, for words that no model said."""
        agent = self.worker.agent
        names = tuple(tool.name for tool in agent.tools.active)
        return (
            RunStarted(message, agent.model, names, agent.context.cwd, agent.chain),
            BlockComplete(f"msg_{new_id()}", SYNTHETIC, Text(text), 0),
            RunEnded(Move.STOPPED, Why.COMPLETED, text),
        )


def _called(message: UserMessage) -> re.Match[str] | None:
    first = message.content[0] if message.content else None
    return CALLED.fullmatch(first.text.strip()) if isinstance(first, Text) else None


# What is built in

Act: TypeAlias = Callable[[Prompts, str], Awaitable[str | Run]]
"""Does what a command says with the words behind it; what it has to say, or the run that will say it."""


@record
class BuiltIn:
    """A command that is done here."""

    name: str
    description: str
    act: Act
    hint: str = ""


async def _clear(prompts: Prompts, _words: str) -> str:
    await prompts.worker.agent.clear()
    prompts.tokens = 0
    return "The conversation begins anew."


async def _compact(prompts: Prompts, words: str) -> Run:
    return prompts.worker.agent.compact(words)


async def _context(prompts: Prompts, _words: str) -> str:
    usage = prompts.usage()
    lines = [f"{usage['model']}: {usage['totalTokens']:,} of {usage['maxTokens']:,} tokens ({usage['percentage']} %)"]
    lines += [f"memory: {each['path']} (about {each['tokens']:,} tokens)" for each in usage["memoryFiles"]]
    lines += [f"tools: {len(prompts.worker.agent.tools.active)}, of servers {len(usage['mcpTools'])}"]
    return "\n".join(lines)


async def _cost(prompts: Prompts, _words: str) -> str:
    if not prompts.spent:
        return "Nothing was asked of a model yet."
    bill = total_dollars(prompts.spent.values())
    lines = ["the price is not known" if bill is None else f"{bill:.4f} dollars"]
    for model, spent in prompts.spent.items():
        cached = f"{spent.cache_read_tokens:,} read from and {spent.cache_write_tokens:,} written to the cache"
        lines.append(f"{model}: {spent.input_tokens:,} tokens in, {spent.output_tokens:,} out, {cached}")
    return "\n".join(lines)


async def _model(prompts: Prompts, words: str) -> str:
    if words:
        await prompts.worker.set_model("" if words == "default" else words)
    return f"The model is {prompts.worker.agent.model}."


async def _help(prompts: Prompts, _words: str) -> str:
    return "\n".join(
        f"/{name} {each.hint}".rstrip() + f": {each.description}" for name, each in prompts.listed().items()
    )


BUILT_IN = (
    BuiltIn("clear", "Begin the conversation anew", _clear),
    BuiltIn("compact", "Put a summary in the place of the conversation", _compact, "[what matters in it]"),
    BuiltIn("context", "How full the model's window is", _context),
    BuiltIn("cost", "What was used so far", _cost),
    BuiltIn("help", "The commands there are", _help),
    BuiltIn("model", "Which model is asked, or ask another one", _model, "[name]"),
    BuiltIn("usage", "What was used so far", _cost),
)

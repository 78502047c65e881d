"""
An agent in a few lines: a model, tools and rails, ready for prompts.

    agent = Agent(model="claude-sonnet-4-6", tools=[my_tool])
    answer = await agent.ask("What is in this folder?")
    async for event in agent.run("And now tidy it."): ...
"""

import asyncio
import os
import weakref
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from handrail.builtin.services import ToolServices
from handrail.builtin.table import USUAL_FEATURES
from handrail.conversation.blocks import Json, Text, ToolUse
from handrail.conversation.messages import Message, UserMessage
from handrail.conversation.request import Chain, Effort, History, ThinkingOptions, ToolChoice
from handrail.dispatch.executor import DEFAULT_SCHEDULING
from handrail.dispatch.gate import Rails
from handrail.dispatch.results import ResultStore
from handrail.dispatch.schedule import Scheduling
from handrail.errors import HandrailError
from handrail.files.memory import FileMemory
from handrail.loop.compaction.plan import Compact
from handrail.loop.conversation_state import ConversationState, Mailbox, new_chain
from handrail.loop.events import LoopEvent
from handrail.loop.limits import NO_LIMITS, Limits
from handrail.loop.run import Run
from handrail.loop.run_config import (
    ChooseAnswer,
    FirstAttachments,
    RequestOptions,
    RunConfig,
    SideUsage,
    TurnAttachments,
    no_attachments,
)
from handrail.loop.run_hooks import Expansion, hook_note
from handrail.providers.choose import ModelOptions
from handrail.session.answer import Answer, answer_of
from handrail.session.arguments import (
    Prompt,
    always,
    checked_tools,
    deferrable,
    either,
    found_tools,
    hooked,
    left_out,
    message_of,
    prompt_parts,
    structured_output,
)
from handrail.session.background import end_tasks, running_tasks, with_task_news
from handrail.session.gate import FolderGate
from handrail.session.late_hooks import LateHooks
from handrail.session.models import Streaming, chosen_model
from handrail.session.state_folder import default_services, result_store
from handrail.session.tools import make_catalog
from handrail.tools.context import AgentIdentity, RunContext, RunOptions
from handrail.tools.pool import NO_DEFERRAL, AnyTool, Deferral, DenyFilter, Pool, deny_nothing
from handrail.transcripts.store import OpenTranscript

if TYPE_CHECKING:
    from pydantic import BaseModel

    from handrail.dispatch.approval.sdk import CanUseTool
    from handrail.hooks.news import HookNews
    from handrail.hooks.runner import Hooks
    from handrail.permissions.policy import Policy


class Agent:
    """
    One conversation with a model that may use tools.

    `model`: a name, any object with `stream(request)`, or None for the environment's default. `tools`: your own, beside
    the built-in ones (`builtin_tools`: all, none, or some by name). `rails`: who has a say in each call; by default
    what only reads inside the working folder may run and the rest is refused, because nobody is here to be asked.
    Instead of rails: `policy`, the rules of this agent, and `can_use_tool(tool_name, input, question)`, which is asked
    about what they leave open and returns Allow or Deny. `denied` takes tools away by name; so does `mode` plan, with
    those that never only read. `hooks`: asked before and after calls and at the turning points of a run; `defers`: they
    may put off a call, which the next run takes up first.
    `output`: a JSON Schema or Pydantic model that the last answer must fit. `session`: where the conversation is kept,
    and goes on if it has begun (`handrail.transcripts.store`); whoever opened it closes it.

    One prompt at a time; `send` adds a message to a running one. Leave it with `async with` or `aclose` to close
    connections.

    Raises:
        ProviderSetupError: the model cannot be asked with these settings.
        HandrailError: rails were given together with what rails are made of.
    """

    def __init__(
        self,
        model: str | Streaming | None = None,
        tools: Iterable[AnyTool] = (),
        *,
        system_prompt: str | Sequence[str] | None = None,
        cwd: Path | str | None = None,
        rails: Rails | None = None,
        policy: "Policy | None" = None,
        can_use_tool: "CanUseTool | None" = None,
        hooks: "Hooks | LateHooks | None" = None,
        limits: Limits = NO_LIMITS,
        output: "Json | type[BaseModel] | None" = None,
        builtin_tools: bool | Iterable[str] = True,
        deferral: Deferral | None = None,
        scheduling: Scheduling = DEFAULT_SCHEDULING,
        max_tokens: int | None = None,
        thinking: ThinkingOptions = ThinkingOptions(),  # noqa: B008  # frozen
        effort: Effort | None = None,
        tool_choice: ToolChoice = ToolChoice(),  # noqa: B008  # frozen
        betas: tuple[str, ...] = (),
        task_budget: int | None = None,
        provider: str = "",
        base_url: str = "",
        api_key: str = "",
        fallback_models: tuple[str, ...] = (),
        model_name: str = "",
        opening: FirstAttachments = tuple,
        attach: TurnAttachments = no_attachments,
        compact: Compact | None = None,
        spent_aside: SideUsage = tuple,
        choose: ChooseAnswer | None = None,
        defers: bool = True,
        history: Iterable[Message] = (),
        session: OpenTranscript | None = None,
        chain: Chain | None = None,
        options: RunOptions = RunOptions(),  # noqa: B008  # frozen
        services: Callable[[], ToolServices] | None = None,
        env: Mapping[str, str] | None = None,
        denied: DenyFilter = deny_nothing,
        mode: str = "default",
        identity: AgentIdentity = AgentIdentity(),  # noqa: B008  # frozen
        features: frozenset[str] = USUAL_FEATURES,
        mcp: tuple[AnyTool, ...] = (),
        results: ResultStore | None = None,
    ) -> None:
        if rails is not None and (policy is not None or can_use_tool is not None):
            raise HandrailError("policy and can_use_tool make rails of their own. Give either them or rails.")
        variables = os.environ if env is None else env
        self._mode: Callable[[], str] = lambda: mode
        folder = Path(cwd if cwd is not None else Path.cwd()).absolute()
        chosen = chosen_model(
            model, model_name, ModelOptions(provider, "", base_url, api_key, fallback_models), variables
        )
        custom = checked_tools(tuple(tools))
        kept_as = session.path.stem if session else ""
        self._services = cache(services or partial(default_services, variables, folder, kept_as))
        catalog = make_catalog(
            variables=variables,
            custom=custom,
            deferral=deferral or (Deferral() if any(map(deferrable, custom)) else NO_DEFERRAL),
            denied=either(left_out(builtin_tools, policy), denied),
            planning=lambda: self._mode() == "plan",
            services=self._services,
            features=features,
            interactive=options.interactive,
            mcp=mcp,
        )
        self._close_model = chosen.close
        self._hooks = hooks
        store = results or result_store(variables)
        rails = rails or Rails(
            FolderGate(
                folder,
                variables,
                policy=always(policy),
                can_use_tool=can_use_tool,
                kept=lambda: (store.folder, self._services().state),
                session=session.writer.session_id if session else "",
            )
        )
        gate = rails.gate
        if isinstance(gate, FolderGate):
            self._mode = lambda: gate.mode or mode
        if hooks is not None:  # only who has hooks pays for them
            rails = hooked(rails, hooks, variables)
        self._setup = RunConfig(
            model=chosen.model,
            model_name=chosen.name,
            system=prompt_parts(system_prompt),
            options=RequestOptions(max_tokens, thinking, effort, tool_choice, betas, task_budget),
            rails=rails,
            scheduling=scheduling,
            limits=limits,
            cost=chosen.cost,
            first_attachments=opening,
            attach=with_task_news(attach, self._services, resumed=session is not None and bool(session.messages)),
            compact=compact,
            side_usage=spent_aside,
            hooks=hooks,
            can_defer=defers,
            background_tasks=partial(running_tasks, self._services),
            choose_answer=choose,
            structured=structured_output(output),
        )
        options = replace(options, model=chosen.name, thinking=thinking.mode, tools=self._tool_names)
        context = RunContext(folder, policy=rails.gate.snapshot, agent=identity, options=options)
        past = History(history if session is None else session.messages)
        self._found = found_tools(past.messages)
        if self._found:
            catalog.activate(self._found)
        if session is not None:
            past.transcript = session.scribe
            context = replace(context, cwd=self._last_folder(session.rebuilt.moved, folder))
            if session.rebuilt.note:
                past.append(session.rebuilt.note)
        self._dialogue = ConversationState(catalog, context, store, past, chain=chain or new_chain())
        if session is not None:
            self._dialogue.deferred_call = session.rebuilt.deferred
            self._dialogue.start_source = "fork" if session.forked else ""
        self._current: Callable[[], Run | None] = lambda: None
        if hooks is not None and identity.is_main:
            hooks.on_late_message = self._dialogue.mailbox.news.append
            hooks.on_context = partial(_remark, self._dialogue.mailbox)
            hooks.on_wake = partial(_remark, self._dialogue.mailbox, wakes=True)

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation so far; always in a state that can be continued or saved."""
        return self._dialogue.history.messages

    @property
    def tools(self) -> Pool:
        """All tools that the model may use, in the order it sees them; looking at one loads it."""
        return self._dialogue.catalog.pool

    @property
    def model(self) -> str:
        """The name of the model that is asked."""
        return self._setup.model_name

    @property
    def asked_model(self) -> Streaming:
        """The model itself."""
        return self._setup.model

    @property
    def rails(self) -> Rails:
        """Who has a say in each call."""
        return self._setup.rails

    @property
    def chain(self) -> Chain:
        """The chain of requests of this conversation."""
        return self._dialogue.chain

    @property
    def deferred(self) -> ToolUse | None:
        """The call that hooks put off; the next run takes it up first."""
        return self._dialogue.deferred

    @property
    def context(self) -> RunContext:
        """What its calls share now."""
        return self._dialogue.context

    def set_model(self, model: Streaming, name: str) -> None:
        """Ask another model from the next request of the next prompt on."""
        chosen = chosen_model(model, name, ModelOptions(), {})
        self._setup = replace(self._setup, model=chosen.model, model_name=chosen.name, cost=chosen.cost)
        context = self._dialogue.context
        self._dialogue.context = replace(context, options=replace(context.options, model=chosen.name))

    def refresh_tools(self) -> tuple[str, ...]:
        """Have every tool asked again whether it is enabled; the names of all tools of the next request."""
        return self._dialogue.refresh_tools()

    def _tool_names(self) -> tuple[str, ...]:
        return tuple(tool.name for tool in self._dialogue.catalog.pool.listed)

    def offer(self, mcp: tuple[AnyTool, ...]) -> None:
        """These are the tools of servers from the next request on."""
        self._dialogue.catalog.refresh(mcp=mcp)
        if self._found:
            self._dialogue.catalog.activate(self._found)

    def _last_folder(self, wanted: str, start: Path) -> Path:
        """Where the calls of a resumed session start: where they did at its end, if that still may be."""
        if not wanted or not os.path.isdir(wanted):  # noqa: PTH112  # costs less
            return start
        real = os.path.realpath(wanted)
        inside = any(real == top or real.startswith(f"{top}/") for top in self._services().working_dirs())
        return Path(wanted) if inside else start

    def run(self, prompt: Prompt, *, limits: Limits | None = None, expansion: Expansion | None = None) -> Run:
        """
        Work on a prompt: an async iterator of events that ends with RunEnded.

        `expansion` is the command that the prompt was made from, for hooks. A call that hooks put off (`deferred`) is
        taken up first; with an empty prompt, `()`, nothing is added to that.

        Raises:
            HandrailError: an earlier prompt is still being worked on, or there is nothing to work on.
        """
        if self.running:
            raise HandrailError("A prompt is still being worked on. Use send() to add to it, or close its run first.")
        message = message_of(prompt)
        if not message.content and self.deferred is None:
            raise HandrailError("The message is empty.")
        setup = self._setup if limits is None else replace(self._setup, limits=limits)
        run = Run(setup, self._dialogue, message, expansion)
        self._current = weakref.ref(run)
        return run

    def compact(self, wishes: str = "") -> Run:
        """
        Have a summary take the place of the conversation; `wishes` say what matters in it.

        Raises:
            HandrailError: a prompt is still being worked on, or nobody can make a summary.
        """
        if self.running:
            raise HandrailError("A prompt is still being worked on. Summarise the conversation after it.")
        if self._setup.compact is None:
            raise HandrailError("Nobody can summarise this conversation. Give the agent `compact`.")
        run = Run(self._setup, self._dialogue, UserMessage((Text(wishes),)), instructions=wishes)
        self._current = weakref.ref(run)
        return run

    async def clear(self) -> None:
        """
        Forget the conversation: the next prompt begins a new one. A session keeps what was said before.

        Raises:
            HandrailError: a prompt is still being worked on.
        """
        if self.running:
            raise HandrailError("A prompt is still being worked on. Close its run first.")
        dialogue = self._dialogue
        await dialogue.wait_until_idle()
        if self._hooks is not None:
            await self._tell_end(self._hooks, "clear")
        dialogue.start_source, dialogue.announced_tools, dialogue.view = "clear", frozenset(), None
        dialogue.definitions.clear()
        dialogue.context = replace(dialogue.context, files=FileMemory(), history=())
        dialogue.replace_history(())

    async def ask(self, prompt: Prompt, *, limits: Limits | None = None) -> Answer:
        """
        Work on a prompt to its end.

        Raises:
            RunError: it did not come to an answer; the error says why and holds the RunEnded event.
        """
        run = self.run(prompt, limits=limits)
        try:
            async for _ in run:
                pass
        finally:
            await run.aclose()
        assert run.ended is not None
        return answer_of(run.ended)

    def send(self, prompt: Prompt, *, interrupt: bool = False) -> None:
        """
        Add a message while a prompt is being worked on; it is part of the next request.

        With `interrupt`, tools that give way to a new message stop now. Without a running prompt it waits for the next.
        """
        self._dialogue.mailbox.post(message_of(prompt), submit=interrupt)

    def interrupt(self) -> None:
        """Stop what is running now. The run ends with its events in order, and the conversation can go on."""
        if run := self._current():
            run.interrupt()

    @property
    def running(self) -> bool:
        """Whether a prompt is being worked on."""
        run = self._current()
        return run is not None and run.active

    # Without async

    def ask_sync(self, prompt: Prompt, *, limits: Limits | None = None) -> Answer:
        """Like `ask`, for programs without an event loop."""
        _refuse_inside_a_loop("ask_sync", "await agent.ask(...)")
        return asyncio.run(self._ask_and_close(prompt, limits))

    def run_sync(self, prompt: Prompt, *, limits: Limits | None = None) -> Iterator[LoopEvent]:
        """Like `run`, for programs without an event loop: the agent works while the next event is waited for."""
        _refuse_inside_a_loop("run_sync", "async for event in agent.run(...)")
        return self._events(self.run(prompt, limits=limits))

    async def _ask_and_close(self, prompt: Prompt, limits: Limits | None) -> Answer:
        try:
            return await self.ask(prompt, limits=limits)
        finally:
            await self.aclose()

    def _events(self, run: Run) -> Iterator[LoopEvent]:
        with asyncio.Runner() as runner:
            try:
                while True:
                    try:
                        yield runner.run(run.__anext__())
                    except StopAsyncIteration:
                        return
            finally:
                runner.run(run.aclose())
                runner.run(self.aclose())

    # Letting go

    async def aclose(self) -> None:
        """Stop what runs, also in the background, and close connections. The agent can be used again; it reconnects."""
        if (run := self._current()) and run.active:
            await run.aclose()
        if self._hooks is not None:
            await self._tell_end(self._hooks, "other")
            await self._hooks.aclose()
        await end_tasks(self._services)
        await self._close_model()

    async def _tell_end(self, hooks: "Hooks | LateHooks", reason: str) -> None:
        opened, self._dialogue.session_started = self._dialogue.session_started, False
        if opened and hooks.wants("SessionEnd"):
            await hooks.fire("SessionEnd", {"reason": reason}, self._dialogue.context)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


async def query(
    prompt: Prompt, model: str | Streaming | None = None, **options: Any
) -> AsyncGenerator[LoopEvent, None]:
    """One prompt, all its events; `options` are those of Agent."""
    async with Agent(model, **options) as agent:
        run = agent.run(prompt)
        try:
            async for event in run:
                yield event
        finally:
            await run.aclose()


def _remark(mailbox: Mailbox, news: "HookNews", *, wakes: bool = False) -> None:
    """A hook in the background wants the agent to know something."""
    mailbox.note(hook_note(news.message), wakes=wakes)


def _refuse_inside_a_loop(name: str, instead: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise HandrailError(f"{name}() cannot be used inside a running event loop, which it would block. Use {instead}.")

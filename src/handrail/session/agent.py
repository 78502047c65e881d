"""
An agent in a few lines: a model, tools and rules, ready for prompts.

    agent = Agent("claude-sonnet-4-6", tools=[my_tool], allow=["Bash(git status)"])
    answer = await agent.ask("What is in this folder?")
    async for event in agent.run("And now tidy it."): ...
"""

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType, TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self

from handrail.agents.spec import AgentSpec
from handrail.conversation.blocks import Json, ToolUse
from handrail.conversation.messages import Message
from handrail.conversation.stream import BlockEnd, BlockStart, Delta
from handrail.errors import HandrailError
from handrail.lazy import lazy
from handrail.loop.events import LoopEvent
from handrail.loop.limits import NO_LIMITS, Limits
from handrail.loop.run import Run
from handrail.providers.choose import ModelOptions
from handrail.session.answer import Answer, Structured, answer_of, log_unasked
from handrail.session.arguments import (
    Prompt,
    check_agents,
    check_builtin_tools,
    check_can_use_tool,
    check_contents,
    check_folder,
    check_hooks,
    check_output,
    check_servers,
    check_tools,
    check_type,
    settings_flags,
    split_model,
    transcript_options,
    user_message,
    variables,
)
from handrail.session.blocking import BlockingPrompts, refuse_inside_a_loop
from handrail.session.build import open_session
from handrail.session.models.choose import Streaming, model_by_object
from handrail.session.session import Session
from handrail.session.spec import PromptOptions, SessionHost, SessionSpec, ToolOptions
from handrail.session.tools import deferral_of
from handrail.tools.delegation import AgentReport
from handrail.tools.pool import AnyTool, Deferral, Pool

if TYPE_CHECKING:
    from handrail.dispatch.approval.sdk import CanUseTool
    from handrail.hooks.runner import Hooks
    from handrail.hooks.specs import Function, HookCallback
    from handrail.session import agent_team
    from handrail.session.agents.state import OnNews
else:
    agent_team = lazy("handrail.session.agent_team")

SYSTEM_PROMPT = (
    "You are an agent that works for a person on their machine. Use the tools you were given; "
    "look before you act, and say in the end what you did."
)

SELDOM_DEFERRED = Deferral(mode="auto")
"""Where the environment does not say it otherwise, definitions wait only when there are many."""


class Agent(Generic[Structured]):
    """
    One conversation with a model that may use tools.

    `model`: a name, `ModelOptions`, any object with `stream(request)`, or None for the environment's default.
    `tools`: your own, beside the built-in ones (`builtin_tools`: all, none, or some by name) and those of
    `mcp_servers` (configurations by name, as in `.mcp.json`).

    `allow`, `ask` and `deny` are rules such as `Bash(git status)`, `mode` is the permission mode. What they leave open
    goes to `can_use_tool(tool_name, input, question)`, which returns Allow, Deny, True or False; without it, it is
    refused. With `settings=True` the settings files of the user and of this folder count as well, with
    `settings="file.json"` that one, with `settings={...}` these; without, no file does. `hooks`: functions by event,
    asked before and after calls and at the turning points of a run.

    `output`: a JSON Schema or Pydantic model that the last answer must fit. `session`: True keeps the conversation, an
    id resumes the session of that id or begins it. `agents`: kinds of sub-agents, beside the built-in ones.
    `state_dir`: where handrail keeps the audit log, big results and sessions; without it and without `session` there is
    no audit log, and big results go with the agent. `env`: the variables that count instead of the environment.

    One prompt at a time; `send` adds a message to a running one. Leave it with `async with` or `aclose` to close
    connections.

    Raises:
        ProviderSetupError: the model cannot be asked with these settings.
        HandrailError: an argument is not what is expected.
    """

    def __init__(
        self,
        model: str | Streaming | ModelOptions | None = None,
        tools: Iterable[AnyTool] = (),
        *,
        system_prompt: str | None = None,
        cwd: Path | str | None = None,
        builtin_tools: bool | Iterable[str] = True,
        mcp_servers: Mapping[str, Any] | None = None,
        allow: Iterable[str] = (),
        ask: Iterable[str] = (),
        deny: Iterable[str] = (),
        mode: str = "",
        can_use_tool: "CanUseTool | None" = None,
        settings: bool | str | Path | Mapping[str, Any] = False,
        hooks: "Mapping[str, Function | HookCallback | Sequence[Function | HookCallback]] | Hooks | None" = None,
        output: "type[Structured] | Json | None" = None,
        limits: Limits = NO_LIMITS,
        agents: Iterable[AgentSpec] = (),
        session: bool | str | None = None,
        state_dir: Path | str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        check_type("system_prompt", system_prompt, (str, NoneType), "a text, or None for handrail's own")
        check_type("limits", limits, Limits, "Limits(turns=..., dollars=..., tokens=..., seconds=...)")
        options, own_model = split_model(model)
        custom, environment = check_tools(tools), variables(env, state_dir)
        spec = SessionSpec(
            cwd=check_folder(cwd),
            model=options,
            limits=limits,
            prompt=PromptOptions(SYSTEM_PROMPT if system_prompt is None else system_prompt, context=bool(settings)),
            tools=ToolOptions(
                custom,
                check_builtin_tools(builtin_tools),
                deferral_of(environment, SELDOM_DEFERRED),
                check_servers(mcp_servers),
                agents=check_agents(agents, custom),
                wait_for_servers=True,
            ),
            flags=settings_flags(settings, mode, allow, ask, deny),
            transcript=transcript_options(session),
            output=check_output(output),
            auto_compact=None if settings else True,
            keep_files=bool(session) or bool(environment.get("HANDRAIL_STATE_DIR")),
        )
        check_contents(custom, spec.flags)
        host = SessionHost(
            can_use_tool=check_can_use_tool(can_use_tool), hooks=check_hooks(hooks or {}), model=own_model
        )
        self._open(spec, environment, host)

    @classmethod
    def from_spec(
        cls, spec: SessionSpec, env: Mapping[str, str] | None = None, host: SessionHost | None = None
    ) -> "Agent[Any]":
        """An agent on a whole specification, for programs that need more than the arguments of `Agent` say."""
        agent: Agent[Any] = cls.__new__(cls)
        agent._open(spec, variables(env, None), host or SessionHost())
        return agent

    def _open(self, spec: SessionSpec, env: Mapping[str, str], host: SessionHost) -> None:
        self._session = open_session(spec, env, host)
        self._conversation = self._session.conversation
        self._blocking = BlockingPrompts(self._session)

    @property
    def session(self) -> Session:
        """What was opened for this agent."""
        return self._session

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation so far; always in a state that can be continued or saved."""
        return self._conversation.messages

    @property
    def tools(self) -> Pool:
        """All tools that the model may use, in the order it sees them; looking at one loads it."""
        return self._conversation.tools

    @property
    def model(self) -> str:
        """The name of the model that is asked."""
        return self._session.model.name

    @property
    def deferred(self) -> ToolUse | None:
        """The call that a hook deferred; the next run takes it up first."""
        return self._conversation.deferred

    @property
    def running(self) -> bool:
        """Whether a prompt is being worked on."""
        return self._conversation.running

    def run(self, prompt: Prompt, *, limits: Limits | None = None) -> Run:
        """
        Work on a prompt: an async iterator of events that ends with RunEnded.

        A call that a hook deferred is taken up first; with an empty prompt, `()`, nothing is added to that.

        Raises:
            HandrailError: an earlier prompt is still being worked on, or there is nothing to work on.
        """
        self._session.skills.begin_prompt()
        return self._conversation.run(user_message(prompt), limits=limits)

    async def ask(self, prompt: Prompt, *, limits: Limits | None = None) -> Answer[Structured]:
        """
        Work on a prompt to its end.

        Raises:
            RunError: it did not come to an answer; the error says why and holds the RunEnded event.
        """
        run = self.run(prompt, limits=limits)
        try:
            async for _ in run:
                while run.take() is not None:
                    pass
        finally:
            await run.aclose()
        if run.ended is None:
            raise HandrailError(
                "The agent was closed before the prompt was answered. Close it after the answer has come."
            )
        log_unasked(run.ended)
        return answer_of(run.ended)

    def stream_text(self, prompt: Prompt, *, limits: Limits | None = None) -> "TextStream":
        """
        The text of the answers to a prompt, piece by piece as the model writes it.

        Raises:
            RunError: it did not come to an answer.
        """
        return TextStream(self.run(prompt, limits=limits))

    def compact(self, instructions: str = "") -> Run:
        """
        Have a summary take the place of the conversation; `instructions` say what matters in it.

        Raises:
            HandrailError: a prompt is still being worked on.
        """
        return self._conversation.compact(instructions)

    async def clear(self) -> None:
        """
        Forget the conversation: the next prompt begins a new one. The transcript keeps what was said before.

        Raises:
            HandrailError: a prompt is still being worked on.
        """
        await self._conversation.clear()

    def send(self, prompt: Prompt, *, interrupt: bool = False) -> None:
        """
        Add a message while a prompt is being worked on; it is part of the next request.

        With `interrupt`, tools that give way to a new message stop now. Without a running prompt it waits for the next.
        """
        self._conversation.send(user_message(prompt), interrupt=interrupt)

    def interrupt(self) -> None:
        """Stop what is running now. The run ends with its events in order, and the conversation can go on."""
        self._conversation.interrupt()

    async def set_model(self, model: str | Streaming, name: str = "") -> None:
        """
        Ask another model from the next prompt on.

        Raises:
            ProviderSetupError: it cannot be asked.
        """
        if isinstance(model, str):
            await self._session.set_model(model)
        else:
            await self._session.exchange_model(model_by_object(model, name))

    def refresh_tools(self) -> tuple[str, ...]:
        """Have every tool asked again whether it is enabled; the names of all tools of the next request."""
        return self._conversation.state.refresh_tools()

    # Sub-agents

    async def delegate(
        self,
        prompt: str,
        agent: str = "general-purpose",
        *,
        model: str = "",
        isolation: str = "",
        name: str = "",
        on_event: "OnNews | None" = None,
    ) -> AgentReport:
        """
        Let a sub-agent work on a task to its end; its `text` is what it found, its `problem` why it ended early.

        It works under the rules of this agent, with a conversation of its own, and is on the same bill. `on_event` is
        called with each of its events, as AgentNews with the agent's id. Several may work at the same time.

        Raises:
            HandrailError: it could not begin: there is no such kind, or a rule or hook refused it.
        """
        values = {"description": prompt[:60], "prompt": prompt, "subagent_type": agent, "run_in_background": False}
        more = {"model": model, "isolation": isolation, "name": name}
        return await agent_team.delegate_task(self._session, {**values, **more}, on_event)

    def team(self, name: str, *, wait_seconds: float = 60.0) -> "agent_team.AgentTeam":
        """A team that works in the background: `async with agent.team("docs") as team: await team.start(...)`."""
        return agent_team.AgentTeam(self._session, name, wait_seconds)

    # Without async

    def ask_sync(self, prompt: Prompt, *, limits: Limits | None = None) -> Answer[Structured]:
        """Like `ask`, for programs without an event loop."""
        refuse_inside_a_loop("ask_sync", "await agent.ask(...)")
        return self._blocking.ask(lambda: self.ask(prompt, limits=limits))

    def run_sync(self, prompt: Prompt, *, limits: Limits | None = None) -> Iterator[LoopEvent]:
        """Like `run`, for programs without an event loop: the agent works while the next event is waited for."""
        refuse_inside_a_loop("run_sync", "async for event in agent.run(...)")
        return self._blocking.events(self.run(prompt, limits=limits))

    def close(self) -> None:
        """Like `aclose`, for programs without an event loop; `with Agent(...) as agent:` calls it at the end."""
        refuse_inside_a_loop("close", "await agent.aclose()")
        self._blocking.close()

    def __enter__(self) -> Self:
        self._blocking.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # The end

    async def aclose(self) -> None:
        """
        Stop what runs, also in the background, and close connections and the transcript.

        Raises:
            HandrailError: a tool, hook or permission callback of the running prompt closes it, or another event loop.
        """
        await self._session.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class TextStream:
    """The text of a run as an async iterator. Dropping it stops the run, as dropping a run does."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._slot = -1

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        async for event in self._run:
            match event:
                case BlockStart(kind="text"):
                    self._slot = event.slot
                case Delta() if event.slot == self._slot:
                    return event.text
                case BlockEnd():
                    self._slot = -1
                case _:
                    pass
        if self._run.ended is not None:
            log_unasked(self._run.ended)
            answer_of(self._run.ended)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Stop the run, and wait until nothing of it is left."""
        await self._run.aclose()


async def query(prompt: Prompt, agent: Agent[Any] | None = None) -> AsyncGenerator[LoopEvent, None]:
    """One prompt, all its events. The agent, by default one of the environment's model, is closed afterwards."""
    async with agent or Agent() as opened:
        run = opened.run(prompt)
        try:
            async for event in run:
                yield event
        finally:
            await run.aclose()

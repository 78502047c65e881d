"""
A session of tools without a model: the agent of another framework makes the calls.

    call -> OverlappingCalls -> hooks, rules, questions -> the tool -> hooks, limits -> the result, without secrets

It lives on one event loop: that of `async with`, or one in a thread of its own for `with`. Calls may come from any
loop and any thread.
"""

import asyncio
import itertools
import json
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from handrail.adapters.loop_thread import LoopThread
from handrail.conversation.blocks import Json, ResultBlock, Text, ToolUse
from handrail.errors import HandrailError
from handrail.records import record
from handrail.session.arguments import (
    check_builtin_tools,
    check_can_use_tool,
    check_contents,
    check_folder,
    check_hooks,
    check_servers,
    check_tools,
    settings_flags,
    variables,
)
from handrail.session.build import open_session
from handrail.session.no_model import NoModel
from handrail.session.overlapping_calls import OverlappingCalls
from handrail.session.spec import PromptOptions, SessionHost, SessionSpec, ToolOptions
from handrail.tools.outcome import Outcome
from handrail.tools.pool import AnyTool, Deferral, definition_json

if TYPE_CHECKING:
    from handrail.dispatch.approval.sdk import CanUseTool
    from handrail.hooks.runner import Hooks
    from handrail.hooks.specs import Function, HookCallback

USUAL_TOOLS = ("Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "TaskOutput", "TaskStop", "WebFetch", "Write")
"""The built-in tools that need neither a model nor a conversation of ours."""
LOOP_PATIENCE = 10.0
"""How many seconds a blocking call waits for the loop of its session to begin with it."""


@record
class OfferedTool:
    """What a framework tells its model about a tool."""

    name: str
    description: str
    schema: dict[str, Any]


class ToolSession:
    """
    Tools under handrail's rules, for the agent of another framework.

    The arguments are those of `Agent`: `tools` are your own, `builtin_tools` those of handrail by name (True = all),
    `mcp_servers` configurations by name. What `allow`, `ask`, `deny` and `mode` leave open goes to
    `can_use_tool(tool_name, input, question)`; without it, it is refused. With `settings=True` the settings files of
    the user and of this folder count as well. `state_dir` is where the audit log and big results are kept; without it
    and without `settings=True` there is no audit log.

    A file has to be read before it is changed, as in a conversation, so give each agent a session of its own. Use it
    as `async with`; in a program without an event loop, as `with`.

    Raises:
        HandrailError: an argument is not what is expected.
    """

    def __init__(
        self,
        tools: Iterable[AnyTool] = (),
        *,
        cwd: Path | str | None = None,
        builtin_tools: bool | Iterable[str] = USUAL_TOOLS,
        mcp_servers: Mapping[str, Any] | None = None,
        allow: Iterable[str] = (),
        ask: Iterable[str] = (),
        deny: Iterable[str] = (),
        mode: str = "",
        can_use_tool: "CanUseTool | None" = None,
        settings: bool | str | Path | Mapping[str, Any] = False,
        hooks: "Mapping[str, Function | HookCallback | Sequence[Function | HookCallback]] | Hooks | None" = None,
        state_dir: Path | str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        environment, custom = variables(env, state_dir), check_tools(tools)
        spec = SessionSpec(
            cwd=check_folder(cwd),
            prompt=PromptOptions("", context=False),
            tools=ToolOptions(
                custom,
                check_builtin_tools(builtin_tools),
                Deferral(mode="off"),
                check_servers(mcp_servers),
                strict_mcp=settings is not True,
            ),
            flags=settings_flags(settings, mode, allow, ask, deny),
            slash_commands=False,
            keep_files=bool(environment.get("HANDRAIL_STATE_DIR")) or settings is True,
        )
        check_contents(custom, spec.flags)
        host = SessionHost(
            can_use_tool=check_can_use_tool(can_use_tool), hooks=check_hooks(hooks or {}), model=NoModel()
        )
        self._session = open_session(spec, environment, host)
        self._calls = OverlappingCalls(self._session, self._session.conversation.state)
        self._numbers = itertools.count(1)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: LoopThread | None = None
        self._is_closed = False
        self._submitting = threading.Lock()
        """Held to submit a call and to close the session, so that no call is submitted to a loop that ends."""
        self._submitted: set[Future[Outcome]] = set()
        """The calls of other threads and loops that are not over."""

    @property
    def definitions(self) -> tuple[OfferedTool, ...]:
        """The tools as models are told of them; those of MCP servers are known once the session is open."""
        state = self._session.conversation.state
        pool = state.catalog.refresh()
        view = pool.view(state.context)
        found = [json.loads(definition_json(tool, view)) for tool in pool.active]
        return tuple(OfferedTool(each["name"], each["description"], each["input_schema"]) for each in found)

    # Calls

    async def call(self, name: str, values: Json, call_id: str = "") -> Outcome:
        """
        Run one call: how it ended, with a result that holds no secret. Cancelling it stops the call.

        Calls that are made at the same time run beside each other, and those in conflict in the order they came. A call
        that is refused or fails is an outcome, not an exception.

        Raises:
            HandrailError: the session is not open.
        """
        work = partial(self._call, name, values, call_id)
        if self._session_loop(name) is asyncio.get_running_loop():
            return await work()
        return await asyncio.wrap_future(self._submit(name, work))

    def call_sync(self, name: str, values: Json, call_id: str = "") -> Outcome:
        """
        Like `call`, for threads without an event loop.

        Raises:
            HandrailError: the session is not open, or its event loop waits for this very call.
        """
        begun = threading.Event()
        if self._session_loop(name) is _running_loop():
            raise _blocked_error(name)

        async def work() -> Outcome:
            begun.set()
            return await self._call(name, values, call_id)

        future = self._submit(name, work)
        try:
            if not begun.wait(LOOP_PATIENCE):
                raise _blocked_error(name)
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _submit(self, name: str, work: Callable[[], Coroutine[Any, Any, Outcome]]) -> Future[Outcome]:
        """Begin the work in the loop of the session, which does not end before it."""
        with self._submitting:
            loop = self._session_loop(name)
            future = asyncio.run_coroutine_threadsafe(work(), loop)
            self._submitted.add(future)
        future.add_done_callback(self._submitted.discard)
        return future

    def _session_loop(self, name: str) -> asyncio.AbstractEventLoop:
        if self._is_closed:
            raise HandrailError(f"{name} was called after its ToolSession was closed. Let the agent work inside it.")
        if self._loop is None:
            raise HandrailError(
                f"{name} was called before its ToolSession was opened. Use it as `async with` or `with`."
            )
        return self._loop

    async def _call(self, name: str, values: Json, call_id: str) -> Outcome:
        outcome = await self._calls.run(ToolUse(call_id or f"call-{next(self._numbers)}", name, values))
        content = tuple(map(self._clean, outcome.result.content))
        return replace(outcome, result=replace(outcome.result, content=content))

    def _clean(self, block: ResultBlock) -> ResultBlock:
        if not isinstance(block, Text):
            return block
        text = block.text.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
        return Text(self._session.redactor.text(text))

    # Opening and closing

    async def __aenter__(self) -> Self:
        if self._loop is not None:
            raise HandrailError("This ToolSession was opened before. Make another one.")
        self._loop = asyncio.get_running_loop()
        try:
            await self._session.connect(patient=True)
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._submitting:
            self._is_closed = True
        await self._calls.aclose()
        while submitted := tuple(self._submitted):
            await asyncio.gather(*map(asyncio.wrap_future, submitted), return_exceptions=True)
        await self._session.aclose()

    def __enter__(self) -> Self:
        if _running_loop() is not None:
            raise HandrailError("This program has an event loop, which `with` would block. Use `async with`.")
        thread = LoopThread("handrail tools")
        try:
            thread.run(self.__aenter__())
        except BaseException:
            thread.close()
            raise
        self._thread = thread
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._thread is not None
        try:
            self._thread.run(self.__aexit__(kind, error, trace))
        finally:
            self._thread.close()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _blocked_error(name: str) -> HandrailError:
    return HandrailError(
        f"{name} cannot run: the event loop of its ToolSession waits for the call. "
        "Run the agent with its async methods, or open the session with `with`."
    )

"""The agent as a library: how it is made, asked, and let go of."""

import asyncio
import gc
import itertools
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import pytest

from handrail import Agent, HandrailError, Image, RunEnded, Text, ToolContext, ToolDefinitionError, query, tool
from handrail.conversation.messages import AssistantMessage, UserMessage
from handrail.conversation.stream import MessageStart, StreamEvent, StreamFailure
from handrail.errors import ProviderSetupError
from handrail.loop.events import LoopEvent, RequestSent, RunStarted
from handrail.loop.limits import Limits
from handrail.loop.run import Run
from handrail.testing import ScriptedModel, say, use
from handrail.testing.model_server import ModelServer, Reply
from handrail.tools.context import Progress
from handrail.tools.events import CallStarted
from tests.forked import reference_server, unmeasured
from tests.opening import open_agent

SMALL_SERVER = str(Path(__file__).parent / "servers" / "small_server.py")


def scripted(*answers: Any) -> ScriptedModel:
    return ScriptedModel(answers)


@tool(read_only=True)
async def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


def test_an_answer_is_printed_as_its_text() -> None:
    assert str(Agent(scripted([say("Two words.")]), env={}).ask_sync("How many?")) == "Two words."


# How it is made


def test_a_model_that_cannot_be_asked_is_an_error_at_once() -> None:
    with pytest.raises(ProviderSetupError, match="Set ANTHROPIC_API_KEY"):
        Agent("claude-sonnet-4-6", env={})


def test_something_that_is_no_model_is_named() -> None:
    with pytest.raises(ProviderSetupError, match=r"42 is not a model: it has no stream\(request\)"):
        Agent(42, env={})  # type: ignore[arg-type]


def test_a_plain_function_is_no_tool() -> None:
    with pytest.raises(ToolDefinitionError, match="Put @tool above a function"):
        Agent(scripted(), [len], env={})  # type: ignore[list-item]


def test_built_in_tools_can_be_chosen_by_name() -> None:
    def names(**options: Any) -> list[str]:
        agent = Agent(scripted(), [shout], env={}, **options)
        return [each.name for each in agent.tools]

    assert names(builtin_tools=False) == ["shout"]
    assert names(builtin_tools=["Read"]) == ["Read", "shout"]
    assert {"Glob", "Read", "shout"} <= set(names())
    with pytest.raises(ToolDefinitionError, match="no built-in tool 'Raed'"):
        names(builtin_tools=["Raed"])


@pytest.mark.anyio
async def test_the_environment_names_model_and_server() -> None:
    with anyio.fail_after(5):
        async with ModelServer([Reply((Text("Hello."),))]) as server:
            env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_MODEL": "local-7b", "OPENAI_API_KEY": "k"}
            async with Agent(env=env) as agent:
                assert (await agent.ask("Hi")).text == "Hello."
            [request] = server.requests

    assert (agent.model, request.body["model"]) == ("local-7b", "local-7b")
    assert request.headers["authorization"] == "Bearer k"


@pytest.mark.anyio
@pytest.mark.proves("M4", "M5")
async def test_tools_see_the_run_they_belong_to(tmp_path: Path) -> None:
    seen: list[Any] = []

    @tool(read_only=True)
    async def look(ctx: ToolContext) -> str:
        """Look around."""
        seen.extend([ctx.cwd, ctx.options.model, ctx.options.tools(), ctx.agent.id, list(ctx.history)])
        return ""

    model = scripted([use("1", "look")], [say("Done.")])
    agent = open_agent(model, [look], builtin_tools=False, cwd=tmp_path, model_name="big", env={})
    await agent.ask("Go.")

    assert seen == [tmp_path, "big", ("look",), "main", [UserMessage((Text("Go."),))]]


# How it is asked


@pytest.mark.anyio
async def test_a_conversation_can_be_continued_in_another_agent() -> None:
    first = Agent(scripted([say("One.")]), env={})
    await first.ask("1?")
    second = open_agent(scripted([say("Two.")]), history=first.messages, env={})

    await second.ask("2?")

    assert [type(message) for message in second.messages] == [UserMessage, AssistantMessage] * 2


@pytest.mark.anyio
async def test_a_prompt_may_hold_pictures() -> None:
    agent = Agent(scripted([say("A cat.")]), env={})
    picture = Image("aGk=", "image/png")

    await agent.ask([Text("What is this?"), picture])

    assert agent.messages[0] == UserMessage((Text("What is this?"), picture))


@pytest.mark.anyio
async def test_query_gives_all_events_of_one_prompt() -> None:
    events = [event async for event in query("Hi", Agent(scripted([say("Hello.")]), env={}))]

    assert isinstance(events[-1], RunEnded)
    assert events[-1].text == "Hello."


@pytest.mark.anyio
async def test_leaving_a_query_early_stops_it() -> None:
    before = asyncio.all_tasks()

    @tool(read_only=True)
    async def wait() -> str:
        """Wait for ever."""
        await asyncio.Event().wait()
        return ""

    events = query("Hi", Agent(scripted([use("1", "wait")]), [wait], env={}))
    async for event in events:
        if isinstance(event, CallStarted):
            break
    await events.aclose()

    assert asyncio.all_tasks() == before


@pytest.mark.anyio
@pytest.mark.proves("K8")
async def test_a_model_of_your_own_may_know_of_plain_answers_or_not() -> None:
    cut = StreamFailure("cut", "gone", retryable=True)
    asked: list[bool] = []

    class Both:
        script = scripted([use("1", "shout", text="a"), cut], [say("Whole.")])

        def stream(self, request: Any, *, plain: bool = False) -> Any:
            asked.append(plain)
            return self.script.stream(request)

    assert (await Agent(Both(), [shout], env={}).ask("Hi")).text == "Whole."
    assert asked == [False, True]
    assert (await Agent(Both.script.__class__([[say("One way.")]]), env={}).ask("Hi")).text == "One way."


# Without async


def test_asking_without_an_event_loop() -> None:
    agent = Agent(scripted([say("One.")], [say("Two.")]), env={})

    assert [agent.ask_sync("1?").text, agent.ask_sync("2?").text] == ["One.", "Two."]


def test_events_without_an_event_loop() -> None:
    agent = Agent(scripted([use("1", "shout", text="a")], [say("Done.")]), [shout], env={})

    events = list(agent.run_sync("Go."))

    assert isinstance(events[-1], RunEnded)
    assert any(isinstance(event, CallStarted) for event in events)


def test_leaving_events_early_without_an_event_loop_stops_the_run() -> None:
    agent = Agent(scripted([use("1", "shout", text="a")], [say("Done.")]), [shout], env={})

    for event in agent.run_sync("Go."):
        if isinstance(event, CallStarted):
            break

    assert not agent.running
    assert agent.ask_sync("And?").text == "Done."


def test_an_agent_can_be_closed_while_its_events_are_still_at_hand() -> None:
    agent = Agent(scripted([use("1", "shout", text="a")], [say("Done.")]), [shout], env={})

    events = agent.run_sync("Go.")

    def read() -> None:
        with agent:
            for event in events:
                if isinstance(event, CallStarted):
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read()
    assert (list(events), agent.running) == ([], False)


def test_the_next_prompt_may_come_when_the_last_event_was_read_and_the_events_are_still_at_hand() -> None:
    agent = Agent(scripted([say("One.")], [say("Two.")], [say("Three.")]), env={})
    first = agent.run_sync("1?")
    while not isinstance(next(first), RunEnded):
        pass
    second = agent.run_sync("2?")
    while not isinstance(next(second), RunEnded):
        pass

    assert agent.ask_sync("3?").text == "Three."


def test_events_that_are_dropped_inside_an_event_loop_stop_the_run() -> None:
    agent = Agent(scripted([use("1", "shout", text="a")], [say("Done.")]), [shout], env={})
    kept = [agent.run_sync("Go.")]
    while not isinstance(next(kept[0]), CallStarted):
        pass

    async def drop() -> None:
        kept.clear()

    asyncio.run(drop())

    assert not agent.running
    assert agent.ask_sync("And?").text == "Done."


def test_a_ctrl_c_that_hits_a_call_while_an_event_leaves_the_loop_ends_the_run_and_nothing_else() -> None:
    @tool(read_only=True)
    async def interrupted(ctx: ToolContext) -> str:
        """Be hit by the signal in the step in which its progress is read."""
        ctx.progress(Progress("now"))
        await asyncio.sleep(0)
        raise KeyboardInterrupt

    agent = Agent(scripted([use("1", "interrupted")], [say("Done.")]), [interrupted], env={})

    with pytest.raises(KeyboardInterrupt):
        list(agent.run_sync("Go."))
    assert agent.ask_sync("And?").text == "Done."


@pytest.mark.parametrize("form", ["ask_sync", "run_sync"])
def test_a_second_prompt_from_another_thread_is_refused_and_the_first_is_answered(form: str) -> None:
    refusals = list[str]()

    @tool(read_only=True)
    def ask_again() -> str:
        """Ask the same agent, from the thread of a call."""
        try:
            list(agent.run_sync("Me too.")) if form == "run_sync" else agent.ask_sync("Me too.")
        except HandrailError as error:
            refusals.append(str(error))
        return "asked"

    agent = Agent(scripted([use("1", "ask_again")], [say("First.")], [say("Next.")]), [ask_again], env={})

    assert agent.ask_sync("Go.").text == "First."
    assert [refusal.partition(".")[0] for refusal in refusals] == ["A prompt is still being worked on"]
    assert agent.ask_sync("And now?").text == "Next."


def in_a_loop_of_its_own(agent: Agent[Any], prompt: str) -> None:
    asyncio.run(agent.ask(prompt))


def agent_with_server(folder: Path) -> Agent[Any]:
    """Each of its two prompts has the server write a file."""
    servers = {"small": {"command": sys.executable, "args": [SMALL_SERVER, str(folder / "log")]}}
    calls = [[use(name, "mcp__small__write", path=str(folder / name))] for name in ("a", "b")]
    script = scripted(calls[0], [say("One.")], calls[1], [say("Two.")])
    env = unmeasured() | {"HANDRAIL_MCP_WAIT_MS": "60000"}
    return Agent(script, allow=["mcp__small"], mcp_servers=servers, env=env)


def starts_and_files(folder: Path) -> tuple[int, list[str]]:
    return (folder / "log").read_text().count("---"), [(folder / name).read_text() for name in ("a", "b")]


def test_mcp_servers_of_an_agent_in_a_with_statement_live_from_prompt_to_prompt(tmp_path: Path) -> None:
    with agent_with_server(tmp_path) as agent:
        agent.ask_sync("1?")
        assert [event.text for event in agent.run_sync("2?") if isinstance(event, RunEnded)] == ["Two."]

    assert starts_and_files(tmp_path) == (1, ["written", "written"])


@pytest.mark.parametrize("ask", [Agent.ask_sync, in_a_loop_of_its_own], ids=["ask_sync", "asyncio.run"])
def test_each_prompt_in_a_loop_of_its_own_finds_the_mcp_servers(tmp_path: Path, ask: Callable[..., object]) -> None:
    agent = agent_with_server(tmp_path)
    ask(agent, "1?")
    ask(agent, "2?")
    agent.close()

    assert starts_and_files(tmp_path) == (2, ["written", "written"])


def test_an_agent_whose_servers_belong_to_a_loop_that_stands_still_says_so(tmp_path: Path) -> None:
    with agent_with_server(tmp_path) as agent:
        agent.ask_sync("1?")
        with pytest.raises(HandrailError, match=r"were started in another event loop\. Use the agent in one loop"):
            in_a_loop_of_its_own(agent, "2?")
        assert agent.ask_sync("2?").text == "Two."


def test_an_agent_in_a_with_statement_goes_on_after_ctrl_c(tmp_path: Path) -> None:
    """Ctrl+C comes to the main thread, in the middle of a call."""

    @tool(read_only=True)
    async def press() -> str:
        """Press Ctrl+C."""
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()
        return ""

    with Agent(scripted([use("1", "press")], [say("Done.")]), tools=[press], env={}) as agent:
        with pytest.raises(KeyboardInterrupt):
            agent.ask_sync("Go.")
        assert agent.ask_sync("And now?").text == "Done."


def test_a_prompt_without_async_leaves_no_complaint_about_its_mcp_servers(caplog: pytest.LogCaptureFixture) -> None:
    gc.collect()  # what tests before this one have lost
    caplog.clear()
    env = unmeasured() | {"HANDRAIL_MCP_WAIT_MS": "60000"}
    with Agent(scripted([say("One.")], [say("Two.")]), mcp_servers={"new": reference_server()}, env=env) as agent:
        assert [str(agent.ask_sync(prompt)) for prompt in ("1?", "2?")] == ["One.", "Two."]
    del agent
    gc.collect()  # what a lost task has to say is said when it goes

    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


@pytest.mark.anyio
async def test_a_prompt_in_the_loop_of_another_thread_is_refused_even_before_the_first_has_begun() -> None:
    agent = Agent(scripted([say("One.")], [say("Two.")]), env={})
    run = agent.run("1?")

    with pytest.raises(HandrailError, match=r"still being worked on. It belongs to the event loop of another thread"):
        await asyncio.to_thread(in_a_loop_of_its_own, agent, "2?")
    assert [event.text async for event in run if isinstance(event, RunEnded)] == ["One."]
    await asyncio.to_thread(in_a_loop_of_its_own, agent, "2?")


@pytest.mark.parametrize("by_message", [False, True], ids=["interrupt", "a message that interrupts"])
def test_another_thread_stops_a_call_at_once(by_message: bool) -> None:
    """Without async, there is no other place to interrupt from than another thread."""
    waiting = threading.Event()

    @tool(read_only=True)
    async def wait() -> str:
        """Wait for ever, and wake the loop for nothing."""
        waiting.set()
        await asyncio.Event().wait()
        return ""

    agent = Agent(scripted([use("1", "wait")], [say("Back.")], [say("Back.")]), [wait], env={})

    def stop() -> None:
        waiting.wait()
        agent.send("Hurry.", interrupt=True) if by_message else agent.interrupt()

    stopper = threading.Thread(target=stop)
    stopper.start()
    ended = [event for event in agent.run_sync("Wait.") if isinstance(event, RunEnded)]
    stopper.join()

    assert [event.why.value for event in ended] == ["completed" if by_message else "aborted_tools"]


def test_another_thread_interrupts_a_model_that_says_nothing() -> None:
    asked, problems = threading.Event(), list[BaseException]()

    class Silent:
        async def stream(self, request: object) -> AsyncGenerator[StreamEvent, None]:
            asked.set()
            await asyncio.Event().wait()
            yield StreamFailure("never", "never", retryable=False)

    agent = Agent(Silent(), env={})

    def stop() -> None:
        asked.wait()
        try:
            agent.interrupt()
        except BaseException as error:
            problems.append(error)
            raise

    stopper = threading.Thread(target=stop)
    stopper.start()
    ended = [event for event in agent.run_sync("Hi.") if isinstance(event, RunEnded)]
    stopper.join()

    assert ([event.why.value for event in ended], problems) == (["aborted_streaming"], [])


def here(function: Callable[[], None]) -> None:
    function()


def in_another_thread(function: Callable[[], None]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


@pytest.mark.parametrize("call", [here, in_another_thread])
@pytest.mark.parametrize("at", [RunStarted, RequestSent, MessageStart])
def test_an_interrupt_between_two_events_ends_a_run_without_a_loop(call: Callable[..., None], at: type) -> None:
    class Silent:
        async def stream(self, request: object) -> AsyncGenerator[StreamEvent, None]:
            yield MessageStart("m", "a model")
            await asyncio.Event().wait()

    agent = Agent(Silent(), env={})
    ended = []
    for event in agent.run_sync("Hi."):
        if isinstance(event, at):
            call(agent.interrupt)
        ended += [event.why.value] if isinstance(event, RunEnded) else []

    assert ended == ["aborted_streaming"]


@pytest.mark.parametrize("line", range(4))
def test_an_interrupt_in_the_moment_in_which_a_run_begins_ends_it(line: int) -> None:
    """The run begins before this line of `interrupt`, as it may in another thread."""

    class Silent:
        async def stream(self, request: object) -> AsyncGenerator[StreamEvent, None]:
            yield MessageStart("m", "a model")
            await asyncio.Event().wait()

    agent = Agent(Silent(), env={})
    events, lines, read = agent.run_sync("Hi."), list[int](), list[LoopEvent]()

    def begin(frame: FrameType, kind: str, _arg: object) -> Any:
        if frame.f_code is not Run.interrupt.__code__:
            return None
        if kind == "line":
            lines.append(frame.f_lineno)
            if len(lines) == line + 1:
                read.extend(itertools.takewhile(lambda event: not isinstance(event, MessageStart), events))
        return begin

    tracer = sys.gettrace()
    sys.settrace(begin)
    try:
        agent.interrupt()
    finally:
        sys.settrace(tracer)

    read.extend(events)
    assert [event.why.value for event in read if isinstance(event, RunEnded)] == ["aborted_streaming"]


@pytest.mark.anyio
async def test_the_synchronous_forms_refuse_to_block_a_running_loop() -> None:
    agent = Agent(scripted(), env={})

    with pytest.raises(
        HandrailError, match=r"ask_sync\(\) cannot be used inside a running event loop.*await agent.ask"
    ):
        agent.ask_sync("Hi")
    with pytest.raises(HandrailError, match=r"run_sync\(\) cannot .* async for event in agent.run"):
        agent.run_sync("Hi")


# Letting go


@pytest.mark.anyio
@pytest.mark.proves("R1")
async def test_a_reader_that_runs_out_of_time_leaves_nothing_behind() -> None:
    before = asyncio.all_tasks()

    @tool(read_only=True)
    async def wait() -> str:
        """Wait for ever."""
        await asyncio.Event().wait()
        return ""

    agent = Agent(scripted([say("I wait."), use("1", "wait")], [say("Back.")]), [wait], env={})
    with anyio.move_on_after(0.05) as scope:
        await agent.ask("Wait.")

    assert scope.cancelled_caught
    assert asyncio.all_tasks() == before
    assert (await agent.ask("Still there?")).text == "Back."


@pytest.mark.anyio
async def test_closing_the_agent_closes_its_run() -> None:
    agent = Agent(scripted([say("Hi.")]), env={})
    async with agent:
        run = agent.run("Hi")
        await anext(run)
        running = agent.running

    assert (running, agent.running) == (True, False)
    assert [event async for event in run] == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param({"output": int}, "output is <class 'int'>", id="an output that is no schema"),
        pytest.param({"tools": [shout, shout]}, "two tools called 'shout'", id="two tools of one name"),
    ],
)
def test_what_cannot_work_is_refused_where_the_agent_is_made(options: dict[str, Any], says: str) -> None:
    with pytest.raises(HandrailError, match=says):
        Agent(scripted(), env={}, **options)


@pytest.mark.parametrize("name", ["turns", "dollars", "tokens", "seconds"])
def test_a_limit_must_leave_room(name: str) -> None:
    with pytest.raises(ValueError, match=f"the limit of {name} is 0"):
        Limits(**{name: 0})

"""Calls that a hook puts off: the run ends before them, and the next one takes them up again, once."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Agent, Hooks, Rails, Text, ToolResult, ToolUse, tool
from handrail.conversation.messages import UserMessage
from handrail.conversation.redact import Redactor, build_redactor
from handrail.conversation.transcript import PUT_OFF
from handrail.dispatch.gate import CarefulGate
from handrail.errors import HandrailError
from handrail.loop.compaction.plan import Compaction, CompactionRequest
from handrail.loop.events import RequestSent, ResultsComplete
from handrail.loop.limits import Limits
from handrail.loop.state import Why
from handrail.testing import gate, say, use
from handrail.testing.model_server import Reply
from handrail.tools.context import AgentIdentity
from handrail.tools.events import CallFinished, CallProgress
from handrail.tools.outcome import Status
from handrail.transcripts.log import read
from handrail.transcripts.rebuild import NEVER_STARTED, UNKNOWN, rebuild
from handrail.transcripts.store import OpenTranscript, TranscriptStore
from tests.scenarios.playing import an_agent, ending, only, played, refused, roles, scripted
from tests.transcripts.cutting import Cut
from tests.transcripts.killing import Ended, ran, said, text_of

pytestmark = pytest.mark.anyio

TRUSTING = Rails(CarefulGate(trusting=True))
PAY = use("1", "pay", amount=5)


def verdict(decision: str, **more: Any) -> Any:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision, **more}}


DEFER, ALLOW, DENY = verdict("defer"), verdict("allow"), verdict("deny", permissionDecisionReason="too dear")


class Till:
    """A tool with effects, and hooks that answer in order."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.asked: list[tuple[str, Any]] = []

        @tool
        async def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return f"paid {amount}"

        self.tool = pay

    def hooks(self, *answers: Any, **others: Any) -> Hooks:
        left = list(answers)

        async def guard(event: Any) -> Any:
            self.asked.append((event["tool_use_id"], event["tool_input"]))
            return left.pop(0)

        return Hooks(callbacks={"PreToolUse": [guard], **others})

    def agent(self, hooks: Hooks | None, *answers: Any, **options: Any) -> Agent:
        return an_agent(scripted(answers), self.tool, **{"rails": TRUSTING, "hooks": hooks, **options})


@pytest.fixture
def till() -> Till:
    return Till()


@pytest.fixture
def store(tmp_path: Path) -> TranscriptStore:
    return TranscriptStore(tmp_path / "sessions", Redactor())


async def put_off(till: Till, store: TranscriptStore) -> OpenTranscript:
    """A session that ended before a call."""
    opened = store.create("/proj", "one")
    agent = till.agent(till.hooks(DEFER), [say("I pay."), PAY], session=opened)
    await played(agent.run("Buy it"))
    opened.writer.close()
    return opened


def results(agent: Agent) -> list[str]:
    blocks = [block for m in agent.messages if isinstance(m, UserMessage) for block in m.content]
    return [block.text for block in blocks if isinstance(block, ToolResult)]


@pytest.mark.proves("H2", "R1")
async def test_the_run_ends_before_the_call_and_says_which(till: Till) -> None:
    agent = till.agent(till.hooks(DEFER), [say("I pay."), PAY])
    events = await played(agent.run("Buy it"))

    ended = ending(events)
    assert (ended.why, ended.stop_reason, ended.is_error) == (Why.TOOL_DEFERRED, "tool_deferred", False)
    assert (ended.deferred, ended.text, ended.denials) == (ToolUse("1", "pay", {"amount": 5}), "I pay.", ())
    assert [event.outcome.status for event in only(events, CallFinished)] == [Status.DEFERRED]
    assert not only(events, ResultsComplete)
    assert (till.paid, agent.deferred) == ([], ended.deferred)
    assert not refused(agent.messages)


@pytest.mark.proves("H2", "R1")
@pytest.mark.parametrize(
    ("answer", "paid", "told"),
    [
        pytest.param(ALLOW, [5], "paid 5", id="allowed"),
        pytest.param(verdict("allow", updatedInput={"amount": 4}), [4], "paid 4", id="changed"),
        pytest.param(None, [5], "paid 5", id="nothing against it"),
        pytest.param(DENY, [], "too dear", id="denied"),
        pytest.param(verdict("ask"), [], "there is no one to ask", id="asked"),
    ],
)
async def test_the_next_run_takes_it_up_before_its_prompt(till: Till, answer: Any, paid: list[int], told: str) -> None:
    agent = till.agent(till.hooks(DEFER, answer), [PAY], [say("Done.")])
    await played(agent.run("Buy it"))
    events = await played(agent.run("Well?"))

    assert till.asked == [("1", {"amount": 5})] * 2
    assert till.paid == paid
    [result] = results(agent)
    assert told in result
    assert roles(agent.messages) == ["user", "assistant", "results", "user", "assistant"]
    assert (ending(events).text, ending(events).turns, agent.deferred) == ("Done.", 1, None)
    assert not refused(agent.messages)


async def test_nothing_needs_to_be_said_to_take_it_up(till: Till) -> None:
    prompts: list[str] = []
    heard = {"UserPromptSubmit": [lambda event: prompts.append(event["prompt"])]}
    agent = till.agent(till.hooks(DEFER, ALLOW, **heard), [PAY], [say("Done.")])
    await played(agent.run("Buy it"))
    events = await played(agent.run(()))

    assert (ending(events).text, till.paid, prompts) == ("Done.", [5], ["Buy it"])
    assert roles(agent.messages) == ["user", "assistant", "results", "assistant"]
    with pytest.raises(HandrailError, match="empty"):
        agent.run(())


async def test_it_can_be_put_off_again_and_the_prompt_is_not_taken(till: Till, store: TranscriptStore) -> None:
    opened = await put_off(till, store)
    again = store.resume(opened.path, "/proj")
    agent = till.agent(till.hooks(DEFER, DEFER, ALLOW), [say("Done.")], session=again)
    for _ in range(2):
        events = await played(agent.run("And now?"))
        assert ending(events).deferred == ToolUse("1", "pay", {"amount": 5})
        assert not only(events, RequestSent)
        assert rebuild(read(again.path)).deferred == agent.deferred
    await played(agent.run("At last?"))

    assert till.paid == [5]
    assert roles(agent.messages) == ["user", "assistant", "results", "user", "assistant"]
    assert rebuild(read(again.path)).messages == tuple(agent.messages)


@pytest.mark.proves("H2", "R1", "R13")
async def test_a_resumed_session_takes_it_up_once(till: Till, store: TranscriptStore) -> None:
    opened = await put_off(till, store)
    assert "tool_result" not in opened.path.read_text()
    again = store.resume(opened.path, "/proj")
    assert not again.rebuilt.repairs
    agent = till.agent(till.hooks(ALLOW), [say("Done.")], session=again)
    await played(agent.run("Well?"))
    again.writer.close()

    assert (till.paid, results(agent)) == ([5], ["paid 5"])
    later = store.resume(opened.path, "/proj")
    assert (later.rebuilt.deferred, later.messages) == (None, tuple(agent.messages))
    assert (later.rebuilt.repairs, later.rebuilt.problems) == ((), ())


@pytest.mark.proves("R1", "R2")
async def test_without_the_hooks_it_has_to_be_asked_for(till: Till, store: TranscriptStore) -> None:
    opened = await put_off(till, store)
    agent = till.agent(None, [say("Pity.")], session=store.resume(opened.path, "/proj"))
    events = await played(agent.run("Well?"))

    assert till.paid == []
    [result] = results(agent)
    assert "a hook had put it off, and no hook has a say in it any more" in result
    assert [denial.use.id for denial in ending(events).denials] == ["1"]


@pytest.mark.proves("R1")
async def test_whoever_interrupts_while_it_is_decided_about_has_it_answered(till: Till, store: TranscriptStore) -> None:
    opened = await put_off(till, store)
    again = store.resume(opened.path, "/proj")
    deciding = asyncio.Event()

    async def slow(_event: Any) -> Any:
        deciding.set()
        await asyncio.Event().wait()

    agent = till.agent(Hooks(callbacks={"PreToolUse": [slow]}), [say("Fine.")], session=again)
    run = agent.run("Well?")
    events = asyncio.ensure_future(played(run))
    with anyio.fail_after(20):
        await deciding.wait()
    run.interrupt()

    assert ending(await events).why is Why.ABORTED_TOOLS
    [result] = results(agent)
    assert "was not run: the user interrupted" in result
    assert (till.paid, agent.deferred, refused(agent.messages)) == ([], None, "")
    assert rebuild(read(again.path)).messages == tuple(agent.messages)


@pytest.mark.proves("R1")
async def test_a_fork_answers_it_and_leaves_it_to_the_first_session(till: Till, store: TranscriptStore) -> None:
    opened = await put_off(till, store)
    started: list[str] = []
    hooks = till.hooks(ALLOW, SessionStart=[lambda event: started.append(event["source"])])
    fork = store.fork(opened.path, "/proj")
    agent = till.agent(hooks, [say("So be it.")], session=fork)
    await played(agent.run("Well?"))

    assert (till.paid, results(agent), agent.deferred, started) == ([], [PUT_OFF], None, ["fork"])
    assert rebuild(read(fork.path)).messages == tuple(agent.messages)
    assert rebuild(read(opened.path)).deferred is not None


async def only_the_end(request: CompactionRequest) -> Compaction | None:
    kept = request.history.messages[-3:]
    return Compaction(kept, "full") if request.instructions is not None else None


@pytest.mark.proves("R1")
@pytest.mark.parametrize("given_up", ["clear", "compact"])
async def test_a_conversation_that_is_made_anew_does_not_take_it_up(
    till: Till, store: TranscriptStore, given_up: str
) -> None:
    opened = await put_off(till, store)
    again = store.resume(opened.path, "/proj")
    agent = till.agent(till.hooks(ALLOW), [say("Done.")], session=again, compact=only_the_end)
    if given_up == "clear":
        await agent.clear()
    else:
        await played(agent.compact())
    await played(agent.run("Well?"))

    assert (till.paid, till.asked[1:], agent.deferred) == ([], [], None)
    assert not refused(agent.messages)
    assert rebuild(read(again.path)).messages == tuple(agent.messages)


@pytest.mark.proves("H2")
@pytest.mark.parametrize(
    ("answer", "options"),
    [
        pytest.param([PAY, use("2", "pay", amount=6)], {}, id="two calls"),
        pytest.param([use("0", "pay"), PAY], {}, id="one of two is broken"),
        pytest.param([PAY], {"interactive": True}, id="at a terminal"),
        pytest.param([PAY], {"identity": AgentIdentity("agent-1", "general")}, id="in a sub-agent"),
    ],
)
async def test_where_it_cannot_be_put_off_it_is_asked_for(till: Till, answer: Any, options: Any) -> None:
    agent = till.agent(till.hooks(DEFER, DEFER), answer, [say("Pity.")], **options)
    events = await played(agent.run("Buy it"))

    assert (till.paid, ending(events).why, ending(events).deferred) == ([], Why.COMPLETED, None)
    assert all("which only works for the single call" in denial.reason for denial in ending(events).denials)
    assert ending(events).denials


@pytest.mark.proves("H2")
async def test_of_several_hooks_a_no_goes_before_it_and_it_before_the_rest(till: Till) -> None:
    def answering(decision: str) -> Any:
        return lambda _event: verdict(decision)

    def saying(*decisions: str) -> Hooks:
        return Hooks(callbacks={"PreToolUse": [answering(decision) for decision in decisions]})

    for decisions, why in [
        (("ask", "defer", "allow"), Why.TOOL_DEFERRED),
        (("defer", "allow", "ask"), Why.TOOL_DEFERRED),
        (("defer", "deny"), Why.COMPLETED),
    ]:
        agent = till.agent(saying(*decisions), [PAY], [say("Pity.")])
        assert ending(await played(agent.run("Buy it"))).why is why, decisions
    assert till.paid == []


@pytest.mark.proves("R10")
async def test_a_call_that_lost_a_secret_in_the_session_is_not_taken_up(tmp_path: Path) -> None:
    sent: list[str] = []

    @tool
    async def send(text: str) -> str:
        """Send it."""
        sent.append(text)
        return "sent"

    store = TranscriptStore(tmp_path / "sessions", build_redactor({"MY_TOKEN": "very-secret-token"}))
    till = Till()
    opened = store.create("/proj", "one")
    secret = use("1", "send", text="very-secret-token")
    first = an_agent(scripted([[secret]]), send, rails=TRUSTING, hooks=till.hooks(DEFER), session=opened)
    assert ending(await played(first.run("Go"))).why is Why.TOOL_DEFERRED
    opened.writer.close()

    again = store.resume(opened.path, "/proj")
    other = an_agent(scripted([[say("Pity.")]]), send, rails=TRUSTING, hooks=till.hooks(ALLOW), session=again)
    await played(other.run("Well?"))
    assert (sent, results(other)) == ([], [PUT_OFF])


@pytest.mark.proves("R1", "R13")
async def test_a_file_that_ends_anywhere_runs_it_at_most_once(till: Till, store: TranscriptStore) -> None:
    opened = await put_off(till, store)
    again = store.resume(opened.path, "/proj")
    await played(till.agent(till.hooks(ALLOW), [say("Done.")], session=again).run("Well?"))
    again.writer.close()
    whole = opened.path.read_bytes().splitlines(keepends=True)

    known: list[str] = []
    for end in range(len(whole) + 1):
        made = rebuild(read(_cut(opened.path, b"".join(whole[:end]))))
        assert not refused(made.messages)
        texts = [block.text for m in made.messages for block in getattr(m, "content", ()) if hasattr(block, "is_error")]
        known += ["put off" if made.deferred else text for text in texts[-1:]]
    states = [state for state, before in zip(known, ["", *known], strict=False) if state != before]
    assert states == [NEVER_STARTED, PUT_OFF, "put off", UNKNOWN, "paid 5"]


def _cut(path: Path, data: bytes) -> Path:
    torn = path.with_name("torn.jsonl")
    torn.write_bytes(data)
    return torn


@pytest.mark.proves("H2")
async def test_whether_a_call_is_the_only_one_is_known_at_the_end_of_the_answer(till: Till) -> None:
    @tool(read_only=True)
    async def look(at: str) -> str:
        """Look at it; such calls start while the model still speaks."""
        return f"saw {at}"

    answered = asyncio.Event()
    model = scripted([[use("1", "look", at="a"), gate(answered), use("2", "look", at="b")], [say("Pity.")]])
    agent = an_agent(model, look, rails=TRUSTING, hooks=till.hooks(DEFER, ALLOW))
    run = agent.run("Look")
    with anyio.fail_after(20):
        async for event in run:
            if isinstance(event, CallProgress) and getattr(event.progress, "stage", "") == "response":
                answered.set()

    assert run.ended is not None
    assert ([denial.use.id for denial in run.ended.denials], run.ended.deferred) == (["1"], None)
    assert results(agent)[1] == "saw b"


async def test_hooks_that_were_asked_and_have_nothing_to_say_leave_it_to_the_rules(till: Till) -> None:
    said = [DEFER, None]
    hooks = Hooks(callbacks={"PreToolUse": [lambda _event: said.pop(0), lambda _event: None]})
    agent = till.agent(hooks, [PAY], [say("Done.")])
    await played(agent.run("Buy it"))
    events = await played(agent.run("Well?", limits=Limits(turns=1)))

    assert (till.paid, ending(events).why) == ([5], Why.COMPLETED)  # taking it up was no turn


async def test_a_session_that_took_it_up_can_be_summarised_and_resumed(till: Till, store: TranscriptStore) -> None:
    opened = await put_off(till, store)
    again = store.resume(opened.path, "/proj")
    answers = ([say("Done.")], [say("Yes.")])
    agent = till.agent(till.hooks(ALLOW), *answers, session=again, compact=only_the_end)
    for words in ("Well?", "Sure?"):
        await played(agent.run(words))
    await played(agent.compact())

    assert roles(agent.messages) == ["assistant", "user", "assistant"]
    assert rebuild(read(again.path)).messages == tuple(agent.messages)


# Through the real door

GUARD = """
import json, os, sys
told = json.load(sys.stdin)
with open("asked", "a") as file:
    file.write(told["tool_use_id"] + " ")
decision = "allow" if os.path.exists("yes") else "defer"
print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision}}))
"""
TOUCH = ToolUse("toolu_1", "Bash", {"command": "echo ran >> effects"})


def guarded(folder: Path) -> None:
    (folder / "guard.py").write_text(GUARD)
    (folder / "home" / ".handrail").mkdir(parents=True)
    hook = {"type": "command", "command": f"{sys.executable} -IS guard.py"}
    settings = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}
    (folder / "home" / ".handrail" / "settings.json").write_text(json.dumps(settings))


async def begun(folder: Path, **more: Any) -> Ended:
    guarded(folder)
    return await ran([Reply((TOUCH,))], folder, "-p", "Do it", "--session-id", "put-off", **more)


def effects(folder: Path) -> str:
    file = folder / "effects"
    return file.read_text() if file.exists() else ""


@pytest.mark.proves("H2", "R13")
async def test_headless_ends_with_the_call_and_a_resume_without_words_goes_on(tmp_path: Path) -> None:
    first = await begun(tmp_path)
    end = first.printed[-1]
    assert (first.code, end["subtype"], end["stop_reason"], end["is_error"]) == (0, "success", "tool_deferred", False)
    assert end["deferred_tool_use"] == {"id": "toolu_1", "name": "Bash", "input": {"command": "echo ran >> effects"}}
    assert [line["type"] for line in first.printed if line["type"] == "user"] == []
    assert effects(tmp_path) == ""

    (tmp_path / "yes").touch()
    second = await ran([Reply((Text("Done."),))], tmp_path, "-p", "--resume", "put-off")
    assert (second.code, second.printed[-1]["result"]) == (0, "Done."), second.errors
    assert (effects(tmp_path), (tmp_path / "asked").read_text().split()) == ("ran\n", ["toolu_1", "toolu_1"])
    [result] = [block for block in said(second.requests[0]) if block["type"] == "tool_result"]
    assert result["tool_use_id"] == "toolu_1"

    third = await ran([], tmp_path, "-p", "--resume", "put-off")
    assert (third.code, "there is no prompt" in third.errors) == (1, True)


@pytest.mark.proves("H2")
async def test_the_text_form_tells_the_person_how_to_go_on(tmp_path: Path) -> None:
    first = await begun(tmp_path)
    again = await ran([], tmp_path, "-p", "Well?", "--resume", first.session_id, "--output-format", "text")
    assert "a hook put off a call of Bash; --resume takes it up again" in again.errors


@pytest.mark.proves("R1", "R13")
async def test_kill_9_at_any_record_while_it_is_taken_up_runs_it_at_most_once(tmp_path: Path) -> None:
    await begun(tmp_path)
    (tmp_path / "yes").touch()
    session = next((tmp_path / "state" / "sessions").rglob("put-off.jsonl"))
    before = session.read_bytes()
    told = []
    for record in range(4):
        session.write_bytes(before)
        (tmp_path / "effects").unlink(missing_ok=True)
        arguments = ("-p", "go on", "--resume", "put-off")
        await ran([Reply((Text("Done."),))], tmp_path, *arguments, cut=Cut(record, 500, "kill"))
        done = effects(tmp_path)
        after = await ran([Reply((Text("Done."),))], tmp_path, *arguments)
        assert after.code == 0, after.errors
        results = [text_of(block) for block in said(after.requests[0]) if block["type"] == "tool_result"]
        assert len(results) == 1
        assert effects(tmp_path) in ("", "ran\n")
        told.append((done, effects(tmp_path), "not known" in results[0]))
    assert told[0] == ("", "ran\n", False)
    assert ("ran\n", "ran\n", True) in told

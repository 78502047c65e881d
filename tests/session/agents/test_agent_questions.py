"""Questions of sub-agents: each is answered, refused or expires, and none hangs."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail import Agent, Allow, Deny
from handrail.config.flags import SettingsFlags
from handrail.hooks.specs import HookCallback
from handrail.session.spec import SessionHost, SessionSpec
from handrail.testing.model import say, use
from tests.session.agents.test_subagents import delegate
from tests.session.agents_model import AgentsModel

ANSWERS = st.sampled_from(["yes", "no", "never", "fails"])
QUICKLY = '{"agentQuestionSeconds": 0.05}'


def open_agent(folder: Path, model: AgentsModel, host: SessionHost) -> Agent[Any]:
    env = {"HOME": str(folder / "home"), "HANDRAIL_STATE_DIR": str(folder / "state"), "PATH": "/usr/bin:/bin"}
    (folder / "work").mkdir(exist_ok=True)
    flags = SettingsFlags(sources=(), managed_policy=False, settings=QUICKLY)
    return Agent.from_spec(SessionSpec(folder / "work", flags=flags), env, replace(host, model=model))


@settings(max_examples=10)
@given(st.lists(st.tuples(ANSWERS, st.booleans(), st.booleans()), min_size=1, max_size=5))
def test_each_question_is_answered_refused_or_expires_and_every_agent_goes_on(
    tmp_path_factory: pytest.TempPathFactory, agents: list[tuple[str, bool, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("questions")
    paths: dict[str, tuple[str, ...]] = {}

    async def answer(_name: str, given: Mapping[str, Any], question: Any) -> Any:
        path = str(given["file_path"])
        paths[path] = question.agent.path
        match path.partition("-")[0]:
            case "yes":
                return Allow()
            case "no":
                return Deny("not this")
            case "fails":
                raise RuntimeError("broken")
        return await asyncio.sleep(3600)

    answers: dict[str, Any] = {
        "go": [[delegate(n, f"agent {n}", run_in_background=bg) for n, (_, bg, _) in enumerate(agents)], [say("Ok.")]]
    }
    for n, (how, _, nested) in enumerate(agents):
        write = [[use(f"w{n}", "Write", file_path=f"{how}-{n}", content="x")], [say(f"End {n}.")]]
        if nested:
            answers[f"agent {n}"] = [[delegate(100 + n, f"inner {n}")], [say(f"Outer {n}.")]]
            answers[f"inner {n}"] = write
        else:
            answers[f"agent {n}"] = write
    model = AgentsModel({**answers, "go": [*answers["go"], *([[say("Told.")]] * len(agents))]})

    async def work() -> None:
        with anyio.fail_after(60):
            async with open_agent(folder, model, SessionHost(can_use_tool=answer)) as agent:
                await agent.ask("go")
                while (message := await agent.session.background.next_notification()) is not None:
                    await agent.ask(message.content)
                assert {each.status for each in agent.session.agents.known.all()} == {"completed"}

    asyncio.run(work())

    made = {path.name for path in (folder / "work").iterdir()}
    assert made == {f"yes-{n}" for n, (how, _, _) in enumerate(agents) if how == "yes"}
    for n, (how, _, nested) in enumerate(agents):
        assert len(paths[f"{how}-{n}"]) == 1 + nested
        told = model.texts(f"inner {n}" if nested else f"agent {n}")
        assert {"yes": "x", "no": "not this", "fails": "failed", "never": "no answer came within"}[how] in told


@pytest.mark.anyio
@pytest.mark.proves("G32", "G39")
@pytest.mark.parametrize("background", [True, False])
async def test_for_an_agent_in_the_background_hooks_decide_before_a_person_is_asked(
    tmp_path: Path, background: bool
) -> None:
    asked: list[str] = []
    person_was_asked = asyncio.Event()

    async def hook(_given: Mapping[str, Any]) -> dict[str, Any]:
        if not background:
            await person_was_asked.wait()  # in the foreground both are asked at once
        decision = {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}
        return {"hookSpecificOutput": decision}

    async def person(name: str, _given: Mapping[str, Any], _question: Any) -> Any:
        asked.append(name)
        person_was_asked.set()
        await asyncio.sleep(3600)

    write = [[use("w", "Write", file_path="made", content="x")], [say("End.")]]
    go = [[delegate(1, "agent", run_in_background=background)], [say("Ok.")]]
    answers: dict[str, Any] = {"go": go, "agent": write}
    model = AgentsModel(answers)
    host = SessionHost(can_use_tool=person, hooks={"PermissionRequest": [HookCallback(hook)]})
    with anyio.fail_after(20):
        async with open_agent(tmp_path, model, host) as agent:
            await agent.ask("go")
            await agent.session.background.next_notification()
    assert asked == ([] if background else ["Write"])
    if background:
        assert (tmp_path / "work" / "made").read_text() == "x"


@pytest.mark.parametrize(
    ("destination", "asked"),
    [("", ["one", "one", "below", "other", "lead"]), ("agent", ["one", "other", "lead"]), ("session", ["one"])],
)
@pytest.mark.anyio
@pytest.mark.proves("G39")
async def test_a_question_of_an_agent_is_answered_once_for_that_agent_or_for_all(
    tmp_path: Path, destination: str, asked: list[str]
) -> None:
    seen: list[str] = []

    async def person(_name: str, given: Mapping[str, Any], question: Any) -> Any:
        seen.append(str(given["command"]).split()[1].partition("-")[0])
        is_first = len(seen) == 1 and destination
        updates = tuple({**update, "destination": destination} for update in question.suggestions)
        return Allow(updated_permissions=updates if is_first else ())

    def make(name: str) -> Any:
        return use(name, "Bash", command=f"mkdir {name}")

    model = AgentsModel({
        "go": [
            [delegate(1, "one", run_in_background=False)],
            [delegate(2, "other", run_in_background=False)],
            [make("lead")],
            [say("Ok.")],
        ],
        "one": [[make("one-1")], [make("one-2")], [delegate(3, "below", run_in_background=False)], [say("One.")]],
        "below": [[make("below")], [say("Below.")]],
        "other": [[make("other")], [say("Other.")]],
    })  # fmt: skip
    with anyio.fail_after(60):
        async with open_agent(tmp_path, model, SessionHost(can_use_tool=person)) as agent:
            await agent.ask("go")
    assert seen == asked
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["below", "lead", "one-1", "one-2", "other"]

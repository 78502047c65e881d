"""Plan mode and questions: the person decides, and nothing is changed or answered in their place."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Agent
from handrail.testing import ScriptedModel, say, use
from handrail.tools.events import CallFinished
from handrail.tools.outcome import Outcome, Status
from handrail.tools.permission import Allow, Deny

pytestmark = pytest.mark.anyio

COLOURS = [{"label": "red", "description": "like fire"}, {"label": "blue"}]
QUESTION = {"question": "Which colour?", "header": "Colour", "options": COLOURS}
Answer = Callable[[str, Mapping[str, Any]], Allow | Deny]


class Person:
    """Answers questions, and remembers them."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.questions: list[Any] = []

    async def __call__(self, name: str, given: Mapping[str, Any], question: Any) -> Allow | Deny:
        self.asked.append((name, given))
        self.questions.append(question)
        return self.answer(name, given)


def open_agent(tmp_path: Path, person: Any, *answers: Any, **options: Any) -> tuple[Agent[Any], ScriptedModel]:
    model = ScriptedModel([*answers, [say("Done.")]])
    agent: Agent[Any] = Agent(model, cwd=tmp_path, state_dir=tmp_path / "state", can_use_tool=person, **options)
    return agent, model


async def outcomes(agent: Agent[Any]) -> list[Outcome]:
    return [event.outcome async for event in agent.run("Go.") if isinstance(event, CallFinished)]


def plan_file(model: ScriptedModel) -> str:
    """The file that the model was told."""
    return last_words(model).partition("is the plan: ")[2].partition("\\n")[0]


def mode_of(agent: Agent[Any]) -> str:
    return agent.session.settings.mode


def last_words(model: ScriptedModel) -> str:
    request: Any = model.requests[-1]
    return str(request.history.messages)


@pytest.mark.proves("N22", "N23", "G24", "G29")
async def test_a_plan_is_written_shown_and_approved_and_the_mode_of_before_comes_back(tmp_path: Path) -> None:
    person = Person(lambda _name, _given: Allow())
    steps: list[Any] = [[use("1", "EnterPlanMode")]]
    agent, model = open_agent(tmp_path, person, *steps, mode="acceptEdits")
    await outcomes(agent)
    assert mode_of(agent) == "plan"
    plan = plan_file(model)

    model.answers = [
        *model.answers,
        [use("2", "Write", file_path=plan, content="1. Paint it.\n")],
        [use("3", "ExitPlanMode", plan="Do whatever you like.")],
        [use("4", "Write", file_path="wall", content="red\n")],
        [say("Painted.")],
    ]
    done = await outcomes(agent)

    assert [outcome.status for outcome in done] == [Status.OK] * 3
    assert person.asked == [("ExitPlanMode", {"plan": "1. Paint it.\n", "planFilePath": plan})]
    assert person.questions[0].document.body == "1. Paint it.\n"
    assert person.questions[0].suggestions == ({"destination": "session", "type": "setMode", "mode": "acceptEdits"},)
    assert (mode_of(agent), (tmp_path / "wall").read_text()) == ("acceptEdits", "red\n")
    assert "Plan mode is over" in last_words(model)


@pytest.mark.proves("G24")
@pytest.mark.parametrize("says_yes", [True, False])
async def test_in_plan_mode_every_change_is_asked_about_whatever_the_rules_allow(
    tmp_path: Path, says_yes: bool
) -> None:
    person = Person(lambda _name, _given: Allow() if says_yes else Deny("later"))
    writes = [use("1", "Write", file_path="a", content="x"), use("2", "Bash", command="touch b")]
    agent, _ = open_agent(tmp_path, person, writes, mode="plan", allow=["Write", "Bash"])

    done = await outcomes(agent)

    assert [name for name, _ in person.asked] == ["Write", "Bash"]
    assert [outcome.status is Status.OK for outcome in done] == [says_yes] * 2
    assert ((tmp_path / "a").exists(), (tmp_path / "b").exists(), mode_of(agent)) == (says_yes, says_yes, "plan")


@pytest.mark.proves("B14", "G24")
async def test_without_anyone_to_ask_plan_mode_refuses_and_has_no_tool_to_leave_it(tmp_path: Path) -> None:
    agent, _ = open_agent(tmp_path, None, [use("1", "Bash", command="touch b")], mode="plan", allow=["Bash"])
    names = {tool.name for tool in agent.tools}

    [outcome] = await outcomes(agent)

    assert outcome.status is Status.DENIED
    assert names.isdisjoint({"AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "Write", "Edit"})
    assert not (tmp_path / "b").exists()


@pytest.mark.proves("N23")
async def test_a_no_to_the_plan_keeps_plan_mode_and_reaches_the_model(tmp_path: Path) -> None:
    person = Person(lambda _name, _given: Deny("paint it blue"))
    agent, model = open_agent(tmp_path, person, [use("1", "ExitPlanMode")], mode="plan")

    [outcome] = await outcomes(agent)

    assert (outcome.status, mode_of(agent), person.asked[0][1]) == (Status.DENIED, "plan", {})
    assert person.questions[0].document.body == "The model has not written a plan to its file."
    assert "paint it blue" in last_words(model)


async def test_the_person_can_choose_accept_edits_with_the_yes(tmp_path: Path) -> None:
    person = Person(lambda _name, _given: Allow(updated_permissions=person.questions[0].suggestions))
    agent, _ = open_agent(tmp_path, person, [use("1", "ExitPlanMode")], mode="plan")

    await outcomes(agent)

    assert mode_of(agent) == "acceptEdits"


@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
async def test_a_question_reaches_the_person_in_every_mode_and_the_answer_the_model(tmp_path: Path, mode: str) -> None:
    person = Person(lambda _name, given: Allow({**given, "answers": {"Which colour?": "blue"}}))
    agent, model = open_agent(
        tmp_path, person, [use("1", "AskUserQuestion", questions=[QUESTION])], mode=mode, env={"IS_SANDBOX": "1"}
    )

    [outcome] = await outcomes(agent)

    assert outcome.status is Status.OK
    assert [(field.question, [choice.label for choice in field.choices]) for field in person.questions[0].form] == [
        ("Which colour?", ["red", "blue"])
    ]
    assert "Which colour?\\n  blue" in last_words(model)


@pytest.mark.parametrize("allow", [[], ["AskUserQuestion"]])
async def test_answers_that_the_model_makes_up_do_not_count(tmp_path: Path, allow: list[str]) -> None:
    person = Person(lambda _name, _given: Allow())
    forged = use("1", "AskUserQuestion", questions=[QUESTION], answers={"Which colour?": "red"})
    agent, model = open_agent(tmp_path, person, [forged], allow=allow)

    await outcomes(agent)

    assert "answers" not in person.asked[0][1]
    assert "The user did not answer" in last_words(model)


async def out_of_reach(*_question: Any) -> Deny:
    """A person who does not answer."""
    await asyncio.Event().wait()
    return Deny("never")


@pytest.mark.parametrize("brings", [True, False])
@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
async def test_a_hook_may_bring_the_answers_but_its_plain_yes_is_none(tmp_path: Path, event: str, brings: bool) -> None:
    given = {"updatedInput": {"questions": [QUESTION], "answers": {"Which colour?": "red"}}} if brings else {}
    allow = {"permissionDecision": "allow", **given}
    yes = allow if event == "PreToolUse" else {"decision": {"behavior": "allow", **given}}
    reply = {"hookSpecificOutput": {"hookEventName": event, **yes}}
    hooks = {event: [lambda *_given: reply]}
    person = out_of_reach if brings else Person(lambda _name, _given: Deny("not now"))
    agent, model = open_agent(tmp_path, person, [use("1", "AskUserQuestion", questions=[QUESTION])], hooks=hooks)

    with anyio.fail_after(60):
        await outcomes(agent)

    assert ("Which colour?\\n  red" in last_words(model)) is brings


@pytest.mark.parametrize(
    ("questions", "problem"),
    [
        ([], "questions"),
        ([QUESTION] * 2, "the same"),
        ([{**QUESTION, "options": COLOURS[:1]}], "options"),
        ([{**QUESTION, "options": [COLOURS[0]] * 2}], "the same label"),
        ([{**QUESTION, "question": str(number)} for number in range(5)], "questions"),
    ],
)
async def test_questions_that_cannot_be_asked_are_the_models_mistake(
    tmp_path: Path, questions: list[Any], problem: str
) -> None:
    person = Person(lambda _name, _given: Allow())
    agent, _ = open_agent(tmp_path, person, [use("1", "AskUserQuestion", questions=questions)])

    [outcome] = await outcomes(agent)

    assert (outcome.status, person.asked) == (Status.ERROR, [])
    assert problem in outcome.result.text

"""In whatever order hooks, classifier, person, abort and new rules come: nothing turns a deny rule into a run."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.dispatch.approval.classifier import Classification
from handrail.permissions.policy import ModeAvailability
from handrail.permissions.rules import Behaviour, RuleSource
from handrail.tools.abort import AbortReason, AbortSignal
from handrail.tools.permission import Allow, Decision, Deny, Verdict
from tests.dispatch.approval.desk import Classifier, Desk, HookAnswers, Someone

HARMLESS, DENIED = "npm run build", "rm -rf src"
BYPASS = {"type": "setMode", "mode": "bypassPermissions"}
LIFT = {
    "type": "removeRules",
    "behavior": "deny",
    "destination": "projectSettings",
    "rules": [{"toolName": "Bash", "ruleContent": "rm *"}],
}
ANSWERS: list[Any] = [
    None,
    Deny("no"),
    Allow(),
    Allow(updated_permissions=(BYPASS,)),
    Allow({"command": DENIED}),
    Allow({"command": DENIED}, (BYPASS, LIFT)),
    Allow({"command": "npm test"}),
]
EVENTS = ["person", "hooks", "classifier", "abort", "rule"]


class Play:
    """One question, and those who have something to do with it, each at its turn."""

    def __init__(self, folder: Path, answers: dict[str, Any]) -> None:
        self.person, self.hooks, self.classifier = Someone(), HookAnswers(), Classifier()
        self.signal = AbortSignal()
        self.answers = answers
        flags = ModeAvailability(bypass_available=True, auto_available=True)
        self.desk = Desk(
            folder,
            mode="auto",
            deny=["Bash(rm *)"],
            flags=flags,
            handler=self.person,
            hooks=self.hooks,
            classifier=self.classifier,
        )

    def step(self, event: str) -> None:
        match event:
            case "person":
                self.person.now(self.answers["person"])
            case "hooks":
                self.hooks.now(self.answers["hooks"])
            case "classifier":
                self.classifier.now(Classification(safe=True, reason="fine"))
            case "abort":
                self.signal.abort(AbortReason.USER)
            case "rule":
                deny = RuleSource("user", "settings.json", 1)
                self.desk.live.apply(lambda p: p.adding(Behaviour.DENY, ["Bash(npm publish *)"], deny))

    async def run(self, command: str, order: list[str]) -> Decision:
        asking = asyncio.create_task(self.desk.bash(command, abort=self.signal))
        for event in order:
            for _ in range(20):
                await asyncio.sleep(0)
            self.step(event)
        return await asyncio.wait_for(asking, 5)


@pytest.mark.proves("R3", "P6", "G42")
@given(
    order=st.permutations(EVENTS),
    hooks=st.sampled_from(ANSWERS),
    person=st.sampled_from(ANSWERS),
)
def test_no_order_of_answers_runs_what_a_rule_denies(
    tmp_path_factory: pytest.TempPathFactory, order: list[str], hooks: Any, person: Any
) -> None:
    folder = tmp_path_factory.getbasetemp()

    decision = asyncio.run(Play(folder, {"hooks": hooks, "person": person}).run(HARMLESS, list(order)))

    runs = decision.updated_input or {"command": HARMLESS}
    assert decision.verdict is Verdict.DENY or runs["command"] != DENIED
    assert decision.verdict is not Verdict.ASK


@pytest.mark.proves("R3")
@given(
    order=st.permutations(EVENTS),
    hooks=st.sampled_from(ANSWERS),
    person=st.sampled_from(ANSWERS),
)
def test_a_rule_that_comes_before_the_answer_holds(
    tmp_path_factory: pytest.TempPathFactory, order: list[str], hooks: Any, person: Any
) -> None:
    first = ["rule", *(event for event in order if event != "rule")]
    play = Play(tmp_path_factory.getbasetemp(), {"hooks": hooks, "person": person})

    assert asyncio.run(play.run("npm publish", first)).verdict is Verdict.DENY

"""The gate: who is asked, whose answer counts, what comes of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from handrail.conversation.blocks import Image, Text
from handrail.dispatch.approval.answers import TO_SUBAGENT
from handrail.dispatch.approval.classifier import Classification
from handrail.dispatch.approval.decide import conditions_unchecked
from handrail.dispatch.approval.question import Proposal
from handrail.permissions.facts import NOTHING_SAID, Evidence
from handrail.permissions.policy import ModeAvailability
from handrail.permissions.risk import Level
from handrail.tools.abort import AbortReason, AbortSignal
from handrail.tools.access import Access
from handrail.tools.context import AgentIdentity, RunContext, ToolContext
from handrail.tools.permission import Allow, Check, Decision, Deny, Opinion, Strength, Verdict
from tests.dispatch.approval.desk import Bash, Classifier, CommandInput, Desk, HookAnswers, Someone, Write, until

pytestmark = pytest.mark.anyio

HOOK_ALLOW = Evidence(hook=Opinion(Strength.ALLOW, Verdict.ALLOW, "hooks", "a hook said so"))


# Without anybody


async def test_the_policy_answers_by_itself_where_it_can(tmp_path: Path) -> None:
    person = Someone()
    desk = Desk(tmp_path, allow=["Bash(npm test *)"], deny=["Bash(rm *)"], handler=person)

    assert (await desk.bash("npm test x")).verdict is Verdict.ALLOW
    assert (await desk.bash("rm x")).verdict is Verdict.DENY
    assert (await desk.bash("git status")).verdict is Verdict.ALLOW
    assert person.asked == []


async def test_with_nobody_to_ask_a_question_is_a_no(tmp_path: Path) -> None:
    decision = await Desk(tmp_path).bash("npm publish")

    assert decision.verdict is Verdict.DENY
    assert decision.reason.endswith("and there is no one to ask")
    assert decision.opinions[-1].layer == "nobody"


@pytest.mark.proves("P4")
async def test_a_decision_names_the_snapshot_that_it_was_made_on(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    before = desk.live()
    first = await desk.bash("ls")
    desk.live.apply(lambda policy: policy.with_mode("acceptEdits"))
    second = await desk.bash("ls")

    assert (first.version, second.version) == (before.version, desk.live().version)
    assert second.version > first.version
    assert before.mode == "default"


async def test_relative_paths_are_seen_from_the_folder_of_the_call(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    desk = Desk(tmp_path, deny=["Read(/secret.txt)"])

    assert (await desk.bash("cat secret.txt")).verdict is Verdict.DENY
    assert (await desk.bash("cat ../secret.txt", cwd=tmp_path / "sub")).verdict is Verdict.DENY
    assert (await desk.bash("cat secret.txt", cwd=tmp_path / "sub")).verdict is Verdict.ALLOW


@pytest.mark.proves("R2")
async def test_conditions_of_a_command_that_nobody_checks_do_not_hold(tmp_path: Path) -> None:
    asked: list[str] = []

    async def some(analysis: Any, cwd: str) -> tuple[str, ...]:
        asked.append(cwd)
        return ("there is a hook",)

    assert (await Desk(tmp_path, conditions=conditions_unchecked).bash("git status")).verdict is Verdict.DENY
    assert "there is a hook" in (await Desk(tmp_path, conditions=some).bash("git status")).reason
    assert (await Desk(tmp_path, conditions=some).bash("ls")).verdict is Verdict.ALLOW
    assert asked == [str(Desk(tmp_path).folder)]


# The question


async def test_a_question_shows_the_tool_the_input_the_risk_and_what_always_would_write(tmp_path: Path) -> None:
    person = Someone().now(Deny())
    desk = Desk(tmp_path, handler=person)
    await desk.bash("npm run build && rm -rf dist")
    await desk.bash("npm run build")
    [risky, plain] = person.asked

    assert (risky.tool, risky.input) == ("Bash", {"command": "npm run build && rm -rf dist"})
    assert risky.risk.level is Level.HIGH
    assert risky.risk.reasons == ("'rm -rf dist' removes files",)
    assert plain.risk.level is Level.MEDIUM
    assert plain.proposals == (
        Proposal(
            "Bash(npm run build *)",
            {
                "type": "addRules",
                "behavior": "allow",
                "destination": "localSettings",
                "rules": [{"toolName": "Bash", "ruleContent": "npm run build *"}],
            },
            ".handrail/settings.local.json",
        ),
    )
    assert "not covered by a rule" in plain.reason


async def test_a_question_about_a_path_names_it(tmp_path: Path) -> None:
    person = Someone().now(Deny())
    desk = Desk(tmp_path, handler=person)
    await desk.gate.decide(desk.request(Write(), file_path="/etc/hosts"), Evidence())

    assert person.asked[0].blocked_path == "/etc/hosts"


# Answers


@pytest.mark.proves("G8")
async def test_a_person_can_allow_once_or_refuse(tmp_path: Path) -> None:
    person = Someone().now(Allow())
    desk = Desk(tmp_path, handler=person)

    yes = await desk.bash("npm publish")
    person.now(Deny("use pnpm."))
    no = await desk.bash("npm publish")

    assert (yes.verdict, yes.reason) == (Verdict.ALLOW, "the user agreed")
    assert (no.verdict, no.reason) == (Verdict.DENY, "use pnpm")
    assert [opinion.layer for opinion in no.opinions] == ["person", "person"]
    assert len(person.asked) == 2


@pytest.mark.proves("G8", "G34")
async def test_always_allow_is_asked_once_and_written_where_it_said(tmp_path: Path) -> None:
    kept = Kept()
    person = Someone()
    desk = Desk(tmp_path, handler=person, persist=kept)
    asking = asyncio.create_task(desk.bash("npm run build"))
    await until(lambda: person.asked)
    person.now(person.asked[0].always())

    assert (await asking).verdict is Verdict.ALLOW
    assert (await desk.bash("npm run build --watch")).verdict is Verdict.ALLOW
    assert len(person.asked) == 1
    assert person.asked[0].proposals[0].where == "the file of localSettings"
    assert [update["rules"] for update in kept.written] == [[{"toolName": "Bash", "ruleContent": "npm run build *"}]]


class Kept:
    """Settings that are kept in memory."""

    def __init__(self, error: OSError | None = None) -> None:
        self.written: list[Any] = []
        self._error = error

    def where(self, destination: str) -> str:
        return f"the file of {destination}"

    def refuses(self, update: Any) -> str:
        return "that is never changed" if update.get("type") == "setMode" else ""

    def persist(self, update: Any) -> None:
        if self._error:
            raise self._error
        self.written.append(update)


async def test_what_cannot_be_written_holds_for_the_session(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    person = Someone()
    desk = Desk(tmp_path, handler=person, persist=Kept(OSError(28, "No space left on device")))
    rule = {"toolName": "Bash", "ruleContent": "make *"}
    always = {"type": "addRules", "behavior": "allow", "destination": "localSettings", "rules": [rule]}
    person.now(Allow(updated_permissions=(always, {"type": "nonsense"})))

    assert (await desk.bash("make all")).verdict is Verdict.ALLOW
    assert (await desk.bash("make it")).verdict is Verdict.ALLOW
    assert len(person.asked) == 1
    assert "No space left on device" in caplog.text
    assert "no update of type 'nonsense'" in caplog.text


@pytest.mark.proves("G36")
async def test_a_refusal_carries_words_and_pictures_and_may_stop_the_turn(tmp_path: Path) -> None:
    picture = Image("aGk=", "image/png")
    person = Someone().now(Deny("not this", interrupt=True, feedback=(Text("look:"), picture)))

    decision = await Desk(tmp_path, handler=person).bash("npm publish")

    assert (decision.reason, decision.interrupt) == ("not this", True)
    assert decision.feedback == (Text("look:"), picture)


@pytest.mark.proves("G36")
async def test_a_sub_agent_is_told_that_only_it_is_meant(tmp_path: Path) -> None:
    person = Someone().now(Deny())
    turn = AbortSignal()
    desk = Desk(tmp_path, handler=person)

    decision = await desk.bash("npm publish", agent=AgentIdentity("a1", "Explore"), abort=turn.child())

    assert decision.feedback == (TO_SUBAGENT,)
    assert person.asked[0].agent == AgentIdentity("a1", "Explore")
    assert not turn.aborted


@pytest.mark.proves("F13")
async def test_a_changed_input_is_what_is_decided_on(tmp_path: Path) -> None:
    person = Someone().now(Allow({"file_path": "src/b.py"}))
    desk = Desk(tmp_path, handler=person)

    decision = await desk.gate.decide(desk.request(Write(), file_path="src/a.py"), Evidence())

    assert decision.updated_input == {"file_path": "src/b.py"}
    assert [place.spelling for place in decision.places] == ["src/b.py"]


async def test_an_input_that_is_only_repeated_is_not_changed(tmp_path: Path) -> None:
    person = Someone().now(Allow({"command": "npm publish"}))

    assert (await Desk(tmp_path, handler=person).bash("npm publish")).updated_input is None


@pytest.mark.proves("R3")
async def test_a_changed_input_cannot_get_past_a_deny_rule(tmp_path: Path) -> None:
    person = Someone().now(Allow({"command": "rm -rf src"}))
    desk = Desk(tmp_path, deny=["Bash(rm *)"], handler=person)

    decision = await desk.bash("npm publish")

    assert decision.verdict is Verdict.DENY
    assert decision.reason == "the rule Bash(rm *) matches, whatever was answered"
    assert decision.updated_input is None


@pytest.mark.proves("R3")
async def test_an_answer_that_lifts_a_rule_does_not_lift_it_for_this_call(tmp_path: Path) -> None:
    lift = {
        "type": "removeRules",
        "behavior": "deny",
        "destination": "projectSettings",
        "rules": [{"toolName": "Bash", "ruleContent": "rm *"}],
    }
    person = Someone().now(Allow({"command": "rm -rf src"}, (lift,)))
    desk = Desk(tmp_path, deny=["Bash(rm *)"], handler=person)

    assert (await desk.bash("npm publish")).verdict is Verdict.DENY
    assert desk.live().version == desk.base.version


async def test_a_changed_input_that_does_not_fit_is_refused_with_the_reason(tmp_path: Path) -> None:
    person = Someone().now(Allow({"comand": "ls"}))

    decision = await Desk(tmp_path, handler=person).bash("npm publish")

    assert decision.verdict is Verdict.DENY
    assert "the changed input does not fit" in decision.reason


@pytest.mark.proves("G14")
async def test_the_tools_own_no_holds_for_a_changed_input(tmp_path: Path) -> None:
    class Picky(Bash):
        async def check_permission(self, args: CommandInput, ctx: ToolContext) -> Check:
            return Check(Verdict.DENY, "never that") if "bad" in args.command else Check()

    desk = Desk(tmp_path, handler=Someone().now(Allow({"command": "bad"})))

    decision = await desk.gate.decide(desk.request(Picky(), command="good"), Evidence())

    assert (decision.verdict, decision.reason) == (Verdict.DENY, "never that, whatever was answered")


@pytest.mark.proves("R3")
async def test_a_rule_that_is_made_while_a_person_thinks_counts(tmp_path: Path) -> None:
    person = Someone()
    desk = Desk(tmp_path, handler=person)
    asking = asyncio.create_task(desk.bash("npm publish"))
    await until(lambda: person.asked)
    desk.deny = ["Bash(npm publish *)"]
    desk.base = desk.policy()  # settings that were changed elsewhere; nobody was told
    person.now(Allow())

    assert (await asking).verdict is Verdict.DENY


async def test_a_new_rule_answers_the_questions_that_wait(tmp_path: Path) -> None:
    person = Someone()
    desk = Desk(tmp_path, handler=person)
    both = [asyncio.create_task(desk.bash(f"npm run build {n}")) for n in (1, 2)]
    await until(lambda: len(person.asked) == 2)

    await desk.live.change(person.asked[0].suggestions)

    assert [(await each).verdict for each in both] == [Verdict.ALLOW, Verdict.ALLOW]
    assert person.taken_back == 2


# Who is first


@pytest.mark.proves("G42", "P6")
async def test_a_hook_races_with_the_person_and_the_loser_is_called_off(tmp_path: Path) -> None:
    person, hooks = Someone(), HookAnswers().now(Allow())
    desk = Desk(tmp_path, handler=person, hooks=hooks)

    decision = await desk.bash("npm publish")

    assert (decision.verdict, decision.opinions[-1].layer) == (Verdict.ALLOW, "hooks")
    assert person.taken_back == len(person.asked)
    assert [update["type"] for update in hooks.suggested] == ["addRules"]


@pytest.mark.parametrize("who", ["person", "callback"])
async def test_hooks_learn_that_a_question_is_asked(who: str, tmp_path: Path) -> None:
    person, hooks = Someone(who=who), HookAnswers()
    desk = Desk(tmp_path, handler=person, hooks=hooks)
    deciding = asyncio.create_task(desk.bash("npm publish"))
    await until(lambda: bool(person.asked))

    assert [reason for _, reason in hooks.announced] == [person.asked[0].reason]
    person.now(Deny("no"))
    await deciding


async def test_the_person_wins_against_a_slow_hook(tmp_path: Path) -> None:
    person, hooks = Someone().now(Deny("no")), HookAnswers()

    decision = await Desk(tmp_path, handler=person, hooks=hooks).bash("npm publish")

    assert (decision.verdict, decision.opinions[-1].layer) == (Verdict.DENY, "person")


@pytest.mark.proves("R2")
async def test_a_hook_that_fails_has_no_say(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    hooks = HookAnswers(error=ValueError("broken hook"))
    hooks.opened.set()
    person = Someone()
    desk = Desk(tmp_path, handler=person, hooks=hooks)
    asking = asyncio.create_task(desk.bash("npm publish"))
    await until(lambda: "broken hook" in caplog.text)
    person.now(Allow())

    assert (await asking).opinions[-1].layer == "person"
    assert (await Desk(tmp_path, hooks=hooks).bash("npm publish")).verdict is Verdict.DENY


async def test_without_waiting_the_dialog_is_open_and_learns_what_the_classifier_said(tmp_path: Path) -> None:
    person, classifier = Someone(), Classifier()
    desk = Desk(tmp_path, mode="auto", handler=person, classifier=classifier)
    asking = asyncio.create_task(desk.bash("npm publish"))
    await until(lambda: person.asked)
    classifier.now(Classification(safe=False, reason="it publishes"))
    await until(lambda: person.updates)
    person.now(Deny())

    assert (await asking).verdict is Verdict.DENY
    assert (person.updates[0].id, person.updates[0].note) == (
        person.asked[0].id,
        "the classifier did not allow it: it publishes",
    )


@pytest.mark.proves("G35")
async def test_a_question_whose_call_was_aborted_resolves_by_itself(tmp_path: Path) -> None:
    person, signal = Someone(), AbortSignal()
    desk = Desk(tmp_path, handler=person)
    asking = asyncio.create_task(desk.bash("npm publish", abort=signal))
    await until(lambda: person.asked)
    signal.abort(AbortReason.USER)

    assert "stopped before anybody answered (user_interrupted)" in (await asking).reason
    assert person.taken_back == 1


@pytest.mark.proves("G35")
async def test_nobody_is_asked_about_a_call_that_is_aborted_already(tmp_path: Path) -> None:
    person, signal = Someone(), AbortSignal()
    signal.abort(AbortReason.SIBLING)

    assert (await Desk(tmp_path, handler=person).bash("npm publish", abort=signal)).verdict is Verdict.DENY
    assert person.asked == []


async def test_a_handler_that_fails_is_a_no_with_the_reason(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Someone):
        async def ask(self, question: Any) -> Any:
            raise ValueError("no dialog")

    decision = await Desk(tmp_path, handler=Broken()).bash("npm publish")

    assert decision.verdict is Verdict.DENY
    assert decision.reason == "the user was asked and failed (ValueError: no dialog)"
    assert "ValueError: no dialog" in caplog.text


# The classifier


@pytest.mark.proves("G2", "G25")
async def test_in_auto_mode_a_classifier_may_answer_what_is_left_open_and_nothing_else(tmp_path: Path) -> None:
    classifier = Classifier().now(Classification(safe=True, reason="it runs the tests"))
    desk = Desk(tmp_path, mode="auto", ask=["Bash(git push *)"], deny=["Bash(rm *)"], classifier=classifier)

    decision = await desk.bash("npm test")
    assert (decision.verdict, decision.reason) == (Verdict.ALLOW, "it runs the tests")
    assert decision.opinions[-1] == Opinion(
        Strength.CLASSIFIER, Verdict.ALLOW, "classifier", "it runs the tests", "a model"
    )
    for stronger in ("git push", "rm x", "cat /etc/hostname", "rm -rf ~", "touch .git/config"):
        assert (await desk.bash(stronger)).verdict is Verdict.DENY, stronger
    assert len(classifier.classified) == 1


async def test_outside_auto_mode_no_classifier_is_asked(tmp_path: Path) -> None:
    classifier = Classifier().now(Classification(safe=True))

    assert (await Desk(tmp_path, classifier=classifier).bash("npm test")).verdict is Verdict.DENY
    assert classifier.classified == []


@pytest.mark.proves("G4")
async def test_a_ruling_is_kept_for_the_same_call(tmp_path: Path) -> None:
    classifier = Classifier().now(Classification(safe=True, reason="fine"))
    desk = Desk(tmp_path, mode="auto", classifier=classifier)

    assert [(await desk.bash(c)).verdict for c in ("npm test", "npm test", "npm ci")] == [Verdict.ALLOW] * 3
    assert len(classifier.classified) == 2


@pytest.mark.parametrize("error", [None, ConnectionError("down"), TimeoutError("slow")])
async def test_a_classifier_that_is_out_asks_the_person_instead(tmp_path: Path, error: Exception | None) -> None:
    classifier = Classifier(error=error).now(None)
    person = Someone().now(Allow())

    decision = await Desk(tmp_path, mode="auto", classifier=classifier, handler=person).bash("npm test")

    assert (decision.verdict, decision.opinions[-1].layer) == (Verdict.ALLOW, "person")


async def test_a_classifier_that_never_answers_is_not_waited_for(tmp_path: Path) -> None:
    desk = Desk(tmp_path, mode="auto", classifier=Classifier())

    assert "no one to ask" in (await desk.bash("npm test")).reason


# What no automatic yes may do


@pytest.mark.parametrize("command", ["rm -rf ~", "rm -rf /"])
async def test_a_hook_cannot_say_yes_to_a_critical_path(tmp_path: Path, command: str) -> None:
    hooks = HookAnswers().now(Allow())

    assert (await Desk(tmp_path, hooks=hooks).bash(command)).verdict is Verdict.DENY
    changing = HookAnswers().now(Allow({"command": command}))
    assert (await Desk(tmp_path, hooks=changing).bash("npm publish")).verdict is Verdict.DENY
    person = Someone().now(Allow())
    assert (await Desk(tmp_path, hooks=hooks, handler=person).bash(command)).opinions[-1].layer == "person"


@pytest.mark.proves("R3")
async def test_a_hook_cannot_answer_for_a_tool_that_does_not_say_which_files_it_touches(tmp_path: Path) -> None:
    class Silent(Bash):
        name = "Silent"

        def access(self, args: CommandInput, run: RunContext) -> Access:
            return Access.unknown()

    async def decide(**options: Any) -> Decision:
        desk = Desk(tmp_path, hooks=HookAnswers().now(Allow()), **options)
        return await desk.gate.decide(desk.request(Silent(), command="x"), HOOK_ALLOW)

    assert (await decide(deny=["Read(.env)"])).verdict is Verdict.DENY
    assert (await decide(ask=["Edit(.env)"], mode="bypassPermissions")).verdict is Verdict.DENY
    assert (await decide(deny=["Read(.env)"], handler=Someone().now(Allow()))).opinions[-1].layer == "person"
    assert (await decide(deny=["Read(.env)"], allow=["Silent"])).verdict is Verdict.ALLOW
    assert (await decide()).verdict is Verdict.ALLOW


@pytest.mark.proves("A17")
async def test_neither_hook_nor_rule_nor_mode_answers_for_a_tool_that_needs_a_person(tmp_path: Path) -> None:
    class Asks(Bash):
        name = "AskUserQuestion"
        requires_user_interaction = True

    flags = ModeAvailability(bypass_available=True)
    desk = Desk(tmp_path, mode="bypassPermissions", flags=flags, hooks=HookAnswers().now(Allow()))
    assert (await desk.gate.decide(desk.request(Asks(), command="x"), HOOK_ALLOW)).verdict is Verdict.DENY

    person = Someone().now(Allow())
    desk = Desk(tmp_path, mode="bypassPermissions", flags=flags, handler=person)
    decision = await desk.gate.decide(desk.request(Asks(), command="x"), HOOK_ALLOW)
    assert (decision.opinions[-1].layer, len(person.asked)) == ("person", 1)


@pytest.mark.parametrize(
    ("mode", "wish", "verdict"),
    [
        ("acceptEdits", "", Verdict.ALLOW),
        ("acceptEdits", "default", Verdict.DENY),
        ("acceptEdits", "plan", Verdict.DENY),
        ("acceptEdits", "bypassPermissions", Verdict.ALLOW),
        ("default", "acceptEdits", Verdict.DENY),
        ("default", "bypassPermissions", Verdict.DENY),
        ("plan", "acceptEdits", Verdict.DENY),
    ],
)
async def test_a_sub_agent_works_in_its_own_mode_if_that_is_stricter_than_its_callers(
    tmp_path: Path, mode: str, wish: str, verdict: Verdict
) -> None:
    desk = Desk(tmp_path)
    desk.live.apply(lambda policy: policy.with_mode(mode))
    request = desk.request(Write(), agent=AgentIdentity("agent-1", "x", wish), file_path="a.txt")
    mine = desk.request(Write(), file_path="a.txt")

    decision = await desk.gate.decide(request, NOTHING_SAID)

    assert decision.verdict is verdict
    assert decision.version == desk.live().version
    alone = await desk.gate.decide(mine, NOTHING_SAID)
    assert (alone.verdict is Verdict.ALLOW) is (mode == "acceptEdits")

"""Exit codes and outputs: what each combination means, for every kind of event."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.hooks.events import EVENTS
from handrail.hooks.fold import fold_results, opinion_of, weigh
from handrail.hooks.results import NOTHING, HookOutput, HookResult, failure, result_of
from handrail.hooks.specs import CallbackHook, CommandHook, Hook, HookSource
from handrail.tools.permission import Allow, Deny, Strength, Verdict

OURS, THEIRS = HookSource("project", ".handrail"), HookSource("project", ".claude")
ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY


def said(event: str = "PreToolUse", top: Any = None, **specific: Any) -> str:
    inner = {"hookSpecificOutput": {"hookEventName": event, **specific}} if specific else {}
    return json.dumps({**(top or {}), **inner})


def printed(text: str, *, cut: bool = False) -> HookOutput:
    return HookOutput(text=text, cut=cut)


def heard(event: str, reply: HookOutput, source: HookSource = OURS, *, strict: bool = True, **more: Any) -> HookResult:
    hook = Hook(event, CommandHook("./check.sh"), source, "hooks.X[0].hooks[0]", **more)
    return weigh(hook, result_of(EVENTS[event], reply), strict=strict)


YES = said(permissionDecision="allow")
NO = said(permissionDecision="deny", permissionDecisionReason="no")
BEFORE = [
    pytest.param(HookOutput(), None, "", id="nothing said"),
    pytest.param(printed("all is well"), None, "", id="other text is ignored"),
    pytest.param(printed(said(permissionDecision="allow")), ALLOW, "", id="allow"),
    pytest.param(printed(said(permissionDecision="ask", permissionDecisionReason="hm")), ASK, "hm", id="ask"),
    pytest.param(printed(said(permissionDecision="deny", permissionDecisionReason="no")), DENY, "no", id="deny"),
    pytest.param(printed(said(permissionDecision="deny")), DENY, "'./check.sh' says so", id="deny without a reason"),
    pytest.param(printed(said(permissionDecision="defer")), ASK, "would defer it", id="defer is asked"),
    pytest.param(printed("\ufeff \n" + said(permissionDecision="deny") + "\n"), DENY, "", id="blanks around"),
    pytest.param(printed(said(top={"decision": "approve"})), ALLOW, "", id="the older yes"),
    pytest.param(printed(said(top={"decision": "block", "reason": "old"})), DENY, "old", id="the older no"),
    pytest.param(printed(said(top={"decision": "block"}, permissionDecision="allow")), DENY, "", id="two words"),
    pytest.param(HookOutput(2, "", "stay out\n"), DENY, "stay out", id="exit 2"),
    pytest.param(HookOutput(2), DENY, "no reason", id="exit 2 without words"),
    pytest.param(HookOutput(2, said(permissionDecision="allow"), "err"), DENY, "err", id="exit 2 beats an allow"),
    pytest.param(
        HookOutput(2, said(permissionDecision="deny", permissionDecisionReason="json"), "err"), DENY, "json",
        id="exit 2 with a reason in JSON",
    ),
    pytest.param(HookOutput(2, "{broken", "err"), DENY, "err", id="exit 2 with broken JSON"),
    pytest.param(HookOutput(1, "", "oops"), ASK, "exit code 1: oops", id="exit 1 of ours asks"),
    pytest.param(HookOutput(1, YES), ASK, "exit code 1", id="a hook that failed has not said yes"),
    pytest.param(HookOutput(1, NO), DENY, "no", id="exit 1 and a no"),
    pytest.param(HookOutput(127, "", "not found"), ASK, "exit code 127", id="not found"),
    pytest.param(HookOutput(126), ASK, "exit code 126", id="not executable"),
    pytest.param(HookOutput(-9), ASK, "killed by signal 9", id="killed"),
    pytest.param(printed('{"a": '), ASK, "not JSON", id="malformed JSON"),
    pytest.param(printed('{"a": 1} extra'), ASK, "not JSON", id="text after the JSON"),
    pytest.param(printed("loading\n" + NO), ASK, "text before", id="text before the JSON"),
    pytest.param(printed("{" * 100_000), ASK, "not JSON", id="very deep"),
    pytest.param(printed('{"a": 1', cut=True), ASK, "too long", id="too much"),
    pytest.param(printed(said(permissionDecision="Deny")), ASK, "'Deny'", id="wrong case"),
    pytest.param(printed(said(permissionDecision=True)), ASK, "True", id="wrong type"),
    pytest.param(printed(said(top={"decision": "deny"})), ASK, "'approve' or 'block'", id="wrong word"),
    pytest.param(printed('{"permissionDecision": "deny"}'), ASK, "wrong place", id="wrong place"),
    pytest.param(printed(said(permissionDecison="deny")), ASK, "did you mean", id="misspelt"),
    pytest.param(printed(NO.replace("hookEventName", "x")), ASK, "hookEventName", id="no event"),
    pytest.param(printed(said("PostToolUse", permissionDecision="deny")), ASK, "hookEventName", id="other event"),
    pytest.param(printed('{"hookSpecificOutput": "deny"}'), ASK, "object", id="no object"),
    pytest.param(printed('{"continue": "no"}'), ASK, "true or false", id="continue is a text"),
    pytest.param(printed(said(updatedInput=["ls"])), ASK, "object", id="an input that is none"),
    pytest.param(printed('{"async": true, "asyncTimeout": 5000}'), None, "", id="says nothing now"),
    pytest.param(printed('{"async": "yes"}'), ASK, "true or false", id="async is a text"),
    pytest.param(printed('{"async": true, "asyncTimeout": "5s"}'), ASK, "number", id="asyncTimeout is a text"),
    pytest.param(printed('{"async": true, "decision": "block"}'), DENY, "", id="async and a no"),
    pytest.param(printed(said(updatedInput={"n": float("nan")})), ASK, "not JSON", id="not a number"),
    pytest.param(printed('{"a": 1e999}'), ASK, "not JSON", id="infinite"),
    pytest.param(printed('{"a": "\\ud800"}'), ASK, "not JSON", id="half a character"),
    pytest.param(printed(json.dumps({f"k{n}": n for n in range(101)})), ASK, "101 unknown", id="many words"),
    pytest.param(printed('{"x-trace": 7}'), None, "", id="unknown words are left to the future"),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "verdict", "words"), BEFORE)
@pytest.mark.proves("H2", "R2", "R12")
def test_before_a_tool(reply: HookOutput, verdict: Verdict | None, words: str) -> None:
    answer = heard("PreToolUse", reply)

    assert answer.verdict is verdict
    assert words in answer.reason


LENIENT = [
    pytest.param(HookOutput(1, "", "oops"), None, id="exit 1 warns and goes on"),
    pytest.param(HookOutput(1, said(permissionDecision="allow")), ALLOW, id="valid JSON counts whatever the exit code"),
    pytest.param(HookOutput(3, said(permissionDecision="deny")), DENY, id="also a no"),
    pytest.param(HookOutput(2, "", "no"), DENY, id="exit 2 blocks"),
    pytest.param(HookOutput(127), ASK, id="a script that is not there asks"),
    pytest.param(HookOutput(-11), ASK, id="a crash asks"),
    pytest.param(printed("{oops"), ASK, id="invalid JSON asks"),
]


@pytest.mark.parametrize(("reply", "verdict"), LENIENT)
def test_hooks_written_for_others_are_taken_as_they_expect_unless_they_could_not_run(
    reply: HookOutput, verdict: Verdict | None
) -> None:
    answer = heard("PreToolUse", reply, THEIRS)

    assert answer.verdict is verdict
    assert bool(answer.messages) == (reply.code not in (0, 2) or verdict is ASK)


def test_strictness_can_be_switched_off_for_complaints_only() -> None:
    assert heard("PreToolUse", HookOutput(1, "", "oops"), strict=False).verdict is None
    assert heard("PreToolUse", HookOutput(127), strict=False).verdict is ASK


@pytest.mark.parametrize("reply", [HookOutput(1), HookOutput(127), printed("{x")])
def test_a_hook_may_insist_that_its_failure_blocks(reply: HookOutput) -> None:
    assert heard("PreToolUse", reply, THEIRS, blocks_on_failure=True).verdict is DENY
    assert heard("Stop", reply, THEIRS, blocks_on_failure=True).block
    assert heard("Stop", reply, THEIRS).block is None


@pytest.mark.parametrize("event", sorted(EVENTS))
@pytest.mark.parametrize("family", [OURS, THEIRS])
def test_exit_2_blocks_where_an_event_can_be_blocked_and_names_the_hook(event: str, family: HookSource) -> None:
    answer = heard(event, HookOutput(2, "", "not so"), family)

    named = f"the {event} hook './check.sh' objects: not so"
    blocks = answer.block == named or (answer.verdict is DENY and answer.reason == named)
    assert blocks == (EVENTS[event].blocks or EVENTS[event].decides)
    assert blocks or "not so" in answer.messages[0]


OTHERS = [
    pytest.param("Stop", printed('{"decision":"block","reason":"tests"}'), HookResult(block="tests"), id="block"),
    pytest.param("Stop", printed('{"decision":"block"}'), HookResult(block="it gave no reason"), id="block, no reason"),
    pytest.param("SessionStart", printed('{"decision":"block"}'), NOTHING, id="block where nothing can be blocked"),
    pytest.param("SessionStart", printed("hello\n"), HookResult(context=("hello",)), id="plain text is context"),
    pytest.param("UserPromptSubmit", printed("know this"), HookResult(context=("know this",)), id="also for a prompt"),
    pytest.param("PostToolUse", printed("hello"), NOTHING, id="but not elsewhere"),
    pytest.param("Stop", printed('{"continue":false,"stopReason":"enough"}'), HookResult(stop="enough"), id="stop"),
    pytest.param("Stop", printed('{"continue":false}'), HookResult(stop=""), id="stop without words"),
    pytest.param("Notification", printed('{"systemMessage":"hi"}'), HookResult(messages=("hi",)), id="for the person"),
    pytest.param(
        "PostToolUse", printed(said("PostToolUse", additionalContext="c", updatedToolOutput={"a": 1})),
        HookResult(context=("c",), updated_output={"a": 1}), id="another output",
    ),
    pytest.param(
        "PostToolUse", printed(said("PostToolUse", updatedMCPToolOutput="x")), HookResult(updated_output="x"), id="MCP",
    ),
    pytest.param(
        "PermissionRequest",
        printed(said("PermissionRequest", decision={
            "behavior": "allow", "updatedInput": {"a": 1}, "updatedPermissions": [{"type": "setMode"}]})),
        HookResult(permission=Allow({"a": 1}, ({"type": "setMode"},))), id="a yes for a person",
    ),
    pytest.param(
        "PermissionRequest",
        printed(said("PermissionRequest", decision={"behavior": "deny", "message": "no", "interrupt": True})),
        HookResult(permission=Deny("no", interrupt=True)), id="a no for a person",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("event", "reply", "expected"), OTHERS)
def test_other_events(event: str, reply: HookOutput, expected: HookResult) -> None:
    assert result_of(EVENTS[event], reply) == expected


@pytest.mark.parametrize(
    "decision", [{}, {"behavior": "Allow"}, {"behavior": "allow", "updatedPermissions": [7]}, "allow"]
)
def test_a_permission_answer_that_is_not_understood_is_none(decision: Any) -> None:
    answer = heard("PermissionRequest", printed(said("PermissionRequest", decision=decision)))

    assert answer.permission is None
    assert answer.problem


def test_a_callback_that_fails_before_a_prompt_blocks_it() -> None:
    hook = Hook("UserPromptSubmit", CallbackHook(print), OURS, "callback")

    assert weigh(hook, failure("raised ValueError: x"), strict=True).block


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
WORDS = st.sampled_from(
    ["continue", "decision", "reason", "hookSpecificOutput", "permissionDecision", "updatedInput", "hookEventName"]
)
OUTPUTS = st.recursive(
    JSON | st.sampled_from(["allow", "deny", "PreToolUse"]), lambda i: st.dictionaries(WORDS, i), max_leaves=8
)


@given(event=st.sampled_from(sorted(EVENTS)), code=st.integers(-20, 255), output=OUTPUTS, loose=st.text(max_size=20))
def test_any_reply_has_a_meaning_and_only_a_clean_allow_is_one(event: str, code: int, output: Any, loose: str) -> None:
    for text in (json.dumps(output), loose, "{" + loose):
        answer = heard(event, HookOutput(code, text, loose))

        assert answer.verdict is None or event == "PreToolUse"
        assert answer.verdict is not ALLOW or (code == 0 and "allow" in text)


# The fold

VERDICTS = st.sampled_from([None, ALLOW, ASK, DENY])
INPUTS = st.none() | st.sampled_from([{"a": 1}, {"a": 2}])
ANSWERS = st.builds(
    HookResult,
    verdict=VERDICTS,
    reason=st.text(max_size=3),
    updated_input=INPUTS,
    block=st.none() | st.text(max_size=3),
    stop=st.none() | st.text(max_size=3),
    context=st.tuples(st.text(max_size=3)) | st.just(()),
    permission=st.none() | st.sampled_from([Allow(), Deny()]),
)
CARE = [None, ALLOW, ASK, DENY]


@given(st.lists(ANSWERS, max_size=5), st.randoms())
@pytest.mark.proves("G12", "H2")
def test_the_careful_answer_wins_in_any_order(answers: list[HookResult], order: Any) -> None:
    whole = fold_results(answers)
    shuffled = list(answers)
    order.shuffle(shuffled)

    strongest = max((answer.verdict for answer in answers), key=CARE.index, default=None)
    assert whole.verdict is strongest or (strongest is ALLOW and whole.updated_input is not None)
    if strongest in (ASK, DENY):
        assert fold_results(shuffled).verdict is strongest
    assert (whole.block is None) == all(answer.block is None for answer in answers)
    assert (whole.stop is None) == all(answer.stop is None for answer in answers)
    assert whole.context == tuple(text for answer in answers for text in answer.context)
    given_answers = [answer.permission for answer in answers if answer.permission]
    assert isinstance(whole.permission, Allow) == (
        bool(given_answers) and all(isinstance(answer, Allow) for answer in given_answers)
    )


@given(st.lists(ANSWERS, max_size=4), st.integers(0, 4))
def test_a_hook_without_an_opinion_changes_nothing(answers: list[HookResult], at: int) -> None:
    assert fold_results([*answers[:at], NOTHING, *answers[at:]]) == fold_results(answers)


@given(st.lists(ANSWERS, min_size=1, max_size=5))
def test_the_last_rewriting_counts_and_a_yes_only_for_the_input_it_was_given_for(answers: list[HookResult]) -> None:
    whole = fold_results(answers)

    rewriting = [answer for answer in answers if answer.updated_input is not None]
    assert whole.updated_input == (rewriting[-1].updated_input if rewriting else None)
    if rewriting and whole.verdict is ALLOW:
        assert rewriting[-1].verdict is ALLOW


@pytest.mark.parametrize(("verdict", "strength"), [(ALLOW, Strength.ALLOW), (ASK, Strength.ASK), (DENY, Strength.DENY)])
@pytest.mark.proves("G12")
def test_an_answer_becomes_an_opinion_of_its_strength_that_names_its_place(
    verdict: Verdict, strength: Strength
) -> None:
    answer = heard("PreToolUse", printed(said(permissionDecision=verdict.value, permissionDecisionReason="so")))
    opinion = opinion_of(answer)

    assert opinion is not None
    assert (opinion.strength, opinion.verdict, opinion.layer) == (strength, verdict, "hooks")
    assert (opinion.reason, opinion.source) == ("so", "project settings: hooks.X[0].hooks[0]")
    assert opinion_of(NOTHING) is None

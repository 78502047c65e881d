"""The layers and their fold: who wins, in which mode, and what can never happen."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.conversation.blocks import ToolUse
from handrail.files.paths import FolderContents, Place
from handrail.permissions.case import make_case
from handrail.permissions.facts import Facts
from handrail.permissions.file_access import FileAccess, FileEffect, Lookup
from handrail.permissions.layers import decide, outcome
from handrail.permissions.modes import MODES
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, Rule, RuleProblem, parse_rule
from handrail.tools.permission import Check, Decision, Opinion, Strength, Verdict
from handrail.tools.tool import WARNINGS, McpInfo
from tests.permissions.world import ALL_MODES, LOOKUP, World, declared

HOOK = {
    "allow": Opinion(Strength.ALLOW, Verdict.ALLOW, "hooks", "the hook says yes"),
    "ask": Opinion(Strength.ASK, Verdict.ASK, "hooks", "the hook is not sure"),
    "deny": Opinion(Strength.DENY, Verdict.DENY, "hooks", "the hook says no"),
}
EDIT = ("Edit", {"file_path": "src/a.py"})
MAKE = ("Bash", {"command": "make all"})


@pytest.mark.proves("G6", "G9", "G10", "G11", "G12")
@pytest.mark.parametrize(
    ("rules", "hook", "expected"),
    [
        pytest.param({"deny": ["Edit(src/**)"]}, "allow", "deny", id="a hook's consent does not outweigh a deny rule"),
        pytest.param({"ask": ["Edit(src/**)"]}, "allow", "ask", id="a hook's consent does not outweigh an ask rule"),
        pytest.param({"allow": ["Edit(src/**)"]}, "ask", "ask", id="a hook's doubt outweighs an allow rule"),
        pytest.param({"allow": ["Edit(src/**)"]}, "deny", "deny", id="a hook's no outweighs an allow rule"),
        pytest.param({}, "allow", "allow", id="a hook's consent skips the question"),
        pytest.param({"allow": ["Edit(src/**)"], "ask": ["Edit(**)"]}, "", "ask", id="ask before allow"),
        pytest.param({"allow": ["Edit(src/**)"], "deny": ["Edit"]}, "", "deny", id="deny before allow"),
        pytest.param({"allow": ["Edit(src/**)"]}, "", "allow", id="an allow rule allows"),
        pytest.param({}, "", "ask", id="without any opinion a person is asked"),
    ],
)
def test_the_strongest_opinion_decides(rules: dict[str, list[str]], hook: str, expected: str, tmp_path: Path) -> None:
    world = World(tmp_path, rules=rules)

    assert world.says(*EDIT, Facts(hook=HOOK[hook] if hook else None)) == expected


ROOT = ("Bash", {"command": "rm -rf /"})
PROTECTED = ("Write", {"file_path": ".git/config"})
OUTSIDE = ("Read", {"file_path": "/etc/hosts"})


@pytest.mark.proves("R3", "G6")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("call", "rules", "facts", "expected"),
    [
        pytest.param(ROOT, {"deny": ["Bash(rm *)"]}, Facts(), "deny", id="a deny rule against a critical path"),
        pytest.param(ROOT, {}, Facts(hook=HOOK["deny"]), "deny", id="a hook's no against a critical path"),
        pytest.param(
            ROOT, {}, Facts(check=Check(Verdict.DENY, "no")), "deny", id="a tool's no against a critical path"
        ),
        pytest.param(ROOT, {"allow": ["Bash"]}, Facts(hook=HOOK["allow"]), "ask", id="consent to a critical path"),
        pytest.param(PROTECTED, {"deny": ["Edit(.git/**)"]}, Facts(), "deny", id="a deny rule and a protected path"),
        pytest.param(PROTECTED, {"ask": ["Edit(.git/**)"]}, Facts(), "ask", id="an ask rule and a protected path"),
        pytest.param(
            OUTSIDE, {"deny": ["Read(//etc/**)"]}, Facts(hook=HOOK["allow"]), "deny", id="a deny rule and a yes"
        ),
        pytest.param(
            OUTSIDE, {"ask": ["Read(//etc/**)"]}, Facts(hook=HOOK["allow"]), "ask", id="an ask rule and a yes"
        ),
        pytest.param(
            EDIT, {"deny": ["Edit"], "ask": ["Edit"], "allow": ["Edit"]}, Facts(), "deny", id="all three rules"
        ),
    ],
)
def test_what_no_mode_lifts(
    call: tuple[str, dict[str, Any]],
    rules: dict[str, list[str]],
    facts: Facts,
    expected: str,
    mode: str,
    tmp_path: Path,
) -> None:
    wanted = "deny" if mode == "dontAsk" or (mode == "plan" and call is not OUTSIDE) else expected

    assert World(tmp_path, mode=mode, rules=rules).says(*call, facts) == wanted


@pytest.mark.proves("G23", "G25", "G26", "G7")
@pytest.mark.parametrize(
    ("tool", "values", "default", "accept", "plan", "auto", "dont_ask", "bypass"),
    [
        ("Read", {"file_path": "a"}, *["allow"] * 6),
        ("Read", {"file_path": "/etc/hosts"}, "ask", "ask", "ask", "ask", "deny", "allow"),
        ("Grep", {"pattern": "x"}, *["allow"] * 6),
        ("Glob", {"pattern": "../*"}, "ask", "ask", "ask", "ask", "deny", "allow"),
        ("Edit", {"file_path": "a"}, "ask", "allow", "deny", "allow", "deny", "allow"),
        ("Edit", {"file_path": ".git/config"}, "ask", "ask", "deny", "ask", "deny", "allow"),
        ("Write", {"file_path": "../a"}, "ask", "ask", "deny", "ask", "deny", "allow"),
        ("Bash", {"command": "git status"}, *["allow"] * 6),
        ("Bash", {"command": "make all"}, "ask", "ask", "deny", "ask", "deny", "allow"),
        ("Bash", {"command": "rm -rf /"}, "ask", "ask", "deny", "ask", "deny", "ask"),
        ("Bash", {"command": ""}, "ask", "ask", "deny", "ask", "deny", "allow"),
        ("WebFetch", {"url": "https://example.org/"}, "ask", "ask", "ask", "ask", "deny", "allow"),
        ("WebFetch", {"url": "http://169.254.169.254/"}, "ask", "ask", "ask", "ask", "deny", "ask"),
        ("WebFetch", {"url": "https://"}, *["error"] * 6),
        ("mcp__db__query", {}, "ask", "ask", "deny", "ask", "deny", "allow"),
        ("Unheard", {}, "ask", "ask", "deny", "ask", "deny", "allow"),
        ("TodoWrite", {"todos": []}, *["allow"] * 6),
        ("ExitPlanMode", {}, *["allow"] * 6),
    ],
)  # fmt: skip
def test_each_mode_lets_pass_what_it_says(
    tool: str, values: dict[str, Any], default: str, accept: str, plan: str, auto: str, dont_ask: str, bypass: str,
    tmp_path: Path,
) -> None:  # fmt: skip
    expected = dict(zip(MODES, (default, accept, plan, auto, dont_ask, bypass), strict=True))

    assert {mode: World(tmp_path, mode=mode).says(tool, values) for mode in MODES} == expected


def test_plan_mode_refuses_changes_even_with_an_allow_rule(tmp_path: Path) -> None:
    world = World(tmp_path, mode="plan", rules={"allow": ["Edit", "Bash", "mcp__db"]})

    assert world.says(*EDIT) == "deny"
    assert world.says(*MAKE) == "deny"
    assert world.says("mcp__db__query", {}) == "deny"


def test_plan_mode_asks_about_a_server_that_says_its_tool_only_reads(tmp_path: Path) -> None:
    world = World(tmp_path, mode="plan", rules={"allow": ["mcp__db"]})

    assert world.says("mcp__db__query", {}, Facts(mcp=McpInfo("db", "query"), read_only=True)) == "ask"


def test_the_plan_file_may_be_written_in_plan_mode(tmp_path: Path) -> None:
    world = World(tmp_path, mode="plan")
    case = world.case("Write", {"file_path": "plan.md"})
    policy = replace(case.policy, plan_file=world.at("/home/dev/proj/plan.md"))

    assert decide(make_case(case.use, policy, LOOKUP, case.facts)).verdict is Verdict.ALLOW
    assert world.says("Write", {"file_path": "plan.md"}) == "deny"


def test_a_tool_that_needs_a_person_is_asked_for_in_every_mode_but_the_silent_one(tmp_path: Path) -> None:
    facts = Facts(needs_person=True, read_only=True)
    answers = {mode: World(tmp_path, mode=mode).says("AskUserQuestion", {}, facts) for mode in MODES}

    assert answers == {**dict.fromkeys(MODES, "ask"), "dontAsk": "deny"}


@pytest.mark.proves("G14")
@pytest.mark.parametrize(
    ("facts", "rules", "mode", "expected"),
    [
        (Facts(check=Check(Verdict.ASK, "odd")), {"allow": ["Edit"]}, "default", "allow"),
        (Facts(check=Check(Verdict.ASK, "odd")), {}, "acceptEdits", "ask"),
        (Facts(check=Check(Verdict.ASK, "odd")), {}, "bypassPermissions", "allow"),
        (Facts(check=Check(Verdict.DENY, "no")), {"allow": ["Edit"]}, "bypassPermissions", "deny"),
        (Facts(check=Check(Verdict.ALLOW, "fine")), {}, "default", "allow"),
        (Facts(check=Check(Verdict.ALLOW, "fine")), {"ask": ["Edit"]}, "default", "ask"),
        (Facts(doubt="odd"), {}, "acceptEdits", "ask"),
    ],
)
def test_a_tools_own_check_has_its_place(
    facts: Facts, rules: dict[str, list[str]], mode: str, expected: str, tmp_path: Path
) -> None:
    assert World(tmp_path, rules=rules, mode=mode).says(*EDIT, facts) == expected


@pytest.mark.proves("G2")
def test_a_classifier_only_turns_the_last_question_into_a_yes(tmp_path: Path) -> None:
    yes = Facts(classifier=Opinion(Strength.DENY, Verdict.ALLOW, "model", "looks fine"))

    assert World(tmp_path, mode="auto").says(*MAKE, yes) == "allow"
    assert World(tmp_path, mode="default").says(*MAKE, yes) == "ask"
    assert World(tmp_path, mode="auto", rules={"ask": ["Bash(make:*)"]}).says(*MAKE, yes) == "ask"
    assert World(tmp_path, mode="auto", rules={"deny": ["Bash(make:*)"]}).says(*MAKE, yes) == "deny"
    assert World(tmp_path, mode="auto").says("Write", {"file_path": "../x"}, yes) == "ask"
    assert World(tmp_path, mode="auto").says(*EDIT, Facts(warnings=tuple(WARNINGS.values()))) == "ask"


def test_unmet_conditions_of_the_analysis_are_asked_about(tmp_path: Path) -> None:
    world = World(tmp_path)

    assert world.says("Bash", {"command": "git status"}, Facts(unmet=("a pager is configured",))) == "ask"


@pytest.mark.proves("G37")
def test_a_decision_keeps_every_opinion_and_names_rule_file_and_line(tmp_path: Path) -> None:
    world = World(tmp_path, rules={"deny": ["Edit(src/**)"], "allow": ["Edit"]})

    decision = world.decide(*EDIT, Facts(hook=HOOK["allow"]))

    assert [(opinion.layer, opinion.verdict) for opinion in decision.opinions] == [
        ("hooks", Verdict.ALLOW),
        ("deny rule", Verdict.DENY),
        ("allow rule", Verdict.ALLOW),
    ]
    assert decision.opinions[1].source == "project settings .handrail/settings.json:1: Edit(src/**)"
    assert decision.reason == "the rule Edit(src/**) matches"
    assert decision.version == world.policy.version


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("ls 'broken", "not understood"),
        ("", "empty"),
        ("make x &", "background"),
        ("ls && make all", "'make all' is not covered"),
        ("cat /etc/hosts", "outside the working folders"),
        ("cat $UNKNOWN", "is not known"),
    ],
)
def test_a_question_says_what_stands_in_the_way(command: str, said: str, tmp_path: Path) -> None:
    decision = World(tmp_path, rules={"allow": ["Bash(make x)"]}).decide("Bash", {"command": command})

    assert decision.verdict is Verdict.ASK
    assert said in decision.reason


@pytest.mark.parametrize(
    ("rule", "tool", "values", "matches"),
    [
        ("Bash(run_in_background:true)", "Bash", {"command": "ls", "run_in_background": True}, True),
        ("Bash(run_in_background:true)", "Bash", {"command": "ls"}, False),
        ("CronCreate(durable:true)", "CronCreate", {"durable": True}, True),
        ("CronCreate(durable:true)", "CronCreate", {"durable": "no"}, False),
        ("Agent(model:opus)", "Agent", {"model": "opus"}, True),
        ("Agent(Explore)", "Task", {"subagent_type": "Explore"}, True),
        ("Agent(Explore)", "Agent", {"subagent_type": "Plan"}, False),
        ("Agent(general-purpose)", "Agent", {}, True),
        ("Agent(Ex*)", "Agent", {"subagent_type": "Explore"}, True),
        ("Skill(pdf)", "Skill", {"skill": "pdf", "args": "x"}, True),
        ("Skill(pdf)", "Skill", {"skill": "/pdf"}, True),
        ("mcp__db", "mcp__db__q", {}, True),
        ("mcp__*__delete*", "mcp__db__delete_all", {}, True),
        ("mcp__*", "Bash", {"command": "ls"}, False),
        ("*", "Read", {"file_path": "a"}, True),
        ("Re*", "Read", {"file_path": "a"}, True),
    ],
)
def test_deny_rules_of_every_kind(rule: str, tool: str, values: dict[str, Any], matches: bool, tmp_path: Path) -> None:
    assert (World(tmp_path, rules={"deny": [rule]}).says(tool, values) == "deny") == matches


def test_a_server_cannot_be_read_into_the_rule_of_another(tmp_path: Path) -> None:
    world = World(tmp_path, rules={"allow": ["mcp__db__x__y"]})

    assert world.says("mcp__db__x__y", {}, Facts(mcp=McpInfo("db", "x__y"))) == "allow"
    assert world.says("mcp__db__x__y", {}, Facts(mcp=McpInfo("db__x", "y"))) == "ask"
    assert World(tmp_path, rules={"allow": ["Bash"]}).says("mcp__evil__Bash", {"command": "ls"}) == "ask"


@pytest.mark.proves("R3")
@pytest.mark.parametrize(
    "rule", ["mcp__my.srv", "mcp__my.srv__get it", "mcp__my.srv__*", "mcp__my_srv", "mcp__my_srv__get_it"]
)
def test_a_deny_rule_may_name_a_server_as_it_is_configured(rule: str, tmp_path: Path) -> None:
    world = World(tmp_path, rules={"deny": [rule.replace(" ", ".")], "allow": ["mcp__my_srv"]})

    assert world.says("mcp__my_srv__get_it", {}, Facts(mcp=McpInfo("my.srv", "get.it"))) == "deny"
    assert world.says("mcp__my_srv2__get_it", {}, Facts(mcp=McpInfo("my_srv2", "get_it"))) == "ask"


def test_an_allow_rule_names_a_server_by_its_normal_name_alone(tmp_path: Path) -> None:
    world = World(tmp_path, rules={"allow": ["mcp__my.srv"]})

    assert world.says("mcp__my_srv__x", {}, Facts(mcp=McpInfo("my_srv", "x"))) == "ask"


# Properties: many rules, many calls, every mode. No file system: paths are what they say.


def nowhere(path: str, cwd: str) -> Place:
    text = path if path.startswith("/") else f"{cwd}/{path}"
    return Place(path, text, text)


PURE = Lookup(
    resolve=lambda spelling, cwd, _home: nowhere(spelling, cwd),
    locate=nowhere,
    match_files=lambda _parts, _folder: (),
    exists=lambda _path, _cwd: True,
    beneath=lambda _folder, _hidden: FolderContents((), ()),
)
TEXTS = (
    "Bash", "Bash(ls:*)", "Bash(rm:*)", "Bash(make *)", "Bash(git push:*)", "Bash(* --version)", "Read", "Read(.env)",
    "Read(src/**)", "Read(//**)", "Edit", "Edit(src/**)", "Edit(*.py)", "Write", "WebFetch", "mcp__db", "mcp__db__q*",
    "WebFetch(domain:a.example)", "Agent", "Agent(Explore)", "*", "mcp__*", "Skill(pdf:*)",
)  # fmt: skip


def test_a_file_that_is_not_known_is_asked_about_whatever_else_the_call_accesses(tmp_path: Path) -> None:
    world = World(tmp_path, rules={"allow": ["Bash"], "deny": ["Read(secret.txt)"]})
    case = world.case("Bash", {"command": "ls"})
    nothing = FileAccess(None, FileEffect.MAYBE_BELOW, "ls", clear=True)
    unknown = FileAccess(None, FileEffect.BELOW, "ls", doubt="there is too much to look at", clear=True)

    assert decide(replace(case, files=(*case.files, nothing))).verdict is Verdict.ALLOW
    assert decide(replace(case, files=(*case.files, nothing, unknown))).verdict is Verdict.ASK


USES = (
    ToolUse("1", "Read", {"file_path": "src/a.py"}),
    ToolUse("1", "Read", {"file_path": ".env"}),
    ToolUse("1", "Edit", {"file_path": "src/a.py"}),
    ToolUse("1", "Write", {"file_path": ".git/config"}),
    ToolUse("1", "Bash", {"command": "ls"}),
    ToolUse("1", "Bash", {"command": "make all && rm x"}),
    ToolUse("1", "Bash", {"command": "rm -rf / ; git push"}),
    ToolUse("1", "Bash", {"command": "cat src/a.py > .env"}),
    ToolUse("1", "Bash", {"command": "ls 'broken"}),
    ToolUse("1", "WebFetch", {"url": "https://a.example/"}),
    ToolUse("1", "WebFetch", {"url": "http://127.0.0.1/"}),
    ToolUse("1", "mcp__db__query", {}),
    ToolUse("1", "Agent", {"subagent_type": "Explore"}),
    ToolUse("1", "Other", {"x": 1}),
)
Parsed = Rule | RuleProblem
RULES = st.lists(st.builds(parse_rule, st.sampled_from(TEXTS), st.sampled_from(Behaviour)), max_size=6)
FACTS = st.builds(
    Facts,
    read_only=st.booleans(),
    warnings=st.sampled_from([(), tuple(WARNINGS.values())]),
    needs_person=st.booleans(),
    hook=st.sampled_from([None, *HOOK.values()]),
    classifier=st.sampled_from([None, Opinion(Strength.CLASSIFIER, Verdict.ALLOW, "model", "fine")]),
    doubt=st.sampled_from(["", "odd"]),
    check=st.builds(Check, st.sampled_from([None, *Verdict])),
)


def judged(use: ToolUse, rules: list[Parsed], mode: str, facts: Facts) -> Decision:
    policy = Policy.empty("/p", "/h").with_availability(ALL_MODES).with_rules(rules).with_mode(mode)
    return decide(make_case(use, policy, PURE, declared(use, "/p", facts)))


ANY = (st.sampled_from(USES), RULES, st.sampled_from(MODES), FACTS)


@pytest.mark.proves("R3", "G5")
@given(*ANY)
def test_nothing_overrides_a_deny_rule(use: ToolUse, rules: list[Parsed], mode: str, facts: Facts) -> None:
    decision = judged(use, rules, mode, facts)

    if any(opinion.layer == "deny rule" for opinion in decision.opinions):
        assert decision.verdict is Verdict.DENY


CARE = {Verdict.ALLOW: 0, Verdict.ASK: 1, Verdict.DENY: 2}


@pytest.mark.proves("R3")
@given(*ANY, st.sampled_from(TEXTS))
def test_one_more_deny_rule_never_allows_more(
    use: ToolUse, rules: list[Parsed], mode: str, facts: Facts, text: str
) -> None:
    more = judged(use, [*rules, parse_rule(text, Behaviour.DENY)], mode, facts)

    assert CARE[more.verdict] >= CARE[judged(use, rules, mode, facts).verdict]


@given(*ANY, st.sampled_from(TEXTS))
def test_one_more_allow_rule_never_refuses_more(
    use: ToolUse, rules: list[Parsed], mode: str, facts: Facts, text: str
) -> None:
    more = judged(use, [*rules, parse_rule(text, Behaviour.ALLOW)], mode, facts)

    assert CARE[more.verdict] <= CARE[judged(use, rules, mode, facts).verdict]


@pytest.mark.proves("G20")
@given(*ANY, st.randoms(use_true_random=False))
def test_the_order_of_rules_does_not_matter(
    use: ToolUse, rules: list[Parsed], mode: str, facts: Facts, random: Any
) -> None:
    shuffled = list(rules)
    random.shuffle(shuffled)

    assert judged(use, shuffled, mode, facts).verdict is judged(use, rules, mode, facts).verdict


@given(st.sampled_from(USES), RULES, FACTS)
def test_dont_ask_never_asks(use: ToolUse, rules: list[Parsed], facts: Facts) -> None:
    assert judged(use, rules, "dontAsk", facts).verdict is not Verdict.ASK


@given(st.sampled_from(USES), RULES, FACTS)
def test_bypass_lifts_nothing_above_what_is_protected(use: ToolUse, rules: list[Parsed], facts: Facts) -> None:
    decision = judged(use, rules, "bypassPermissions", facts)
    strong = {o.verdict for o in decision.opinions if o.strength > Strength.PROTECTED_PATH}

    assert decision.verdict is max(strong or {Verdict.ALLOW}, key=CARE.__getitem__)


@given(*ANY)
def test_an_allow_always_has_a_reason(use: ToolUse, rules: list[Parsed], mode: str, facts: Facts) -> None:
    decision = judged(use, rules, mode, facts)

    assert decision.reason or facts.check.verdict is decision.verdict
    assert outcome(decision) in ("allow", "ask", "deny", "error")

"""The policy: frozen, versioned, grouped by source; modes, folders, and updates sent by programs."""

from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.builtin.bash.tool import Bash
from handrail.permissions.policy import ModeAvailability, Policy
from handrail.permissions.rules import Behaviour, Rule, RuleSource
from handrail.permissions.update import UpdateProblem, apply_update
from handrail.session.services import default_services
from handrail.tools.permission import Verdict
from handrail.tools.pool import DenyFilter
from handrail.tools.tool import McpInfo

ALLOW, ASK, DENY = Behaviour.ALLOW, Behaviour.ASK, Behaviour.DENY
USER, PROJECT = RuleSource("user", "~/.handrail/settings.json", 3), RuleSource("project", ".handrail/settings.json", 4)
EMPTY = Policy.empty("/p", "/h")
ALL = ModeAvailability(bypass_available=True, auto_available=True)


@pytest.mark.proves("G17")
def test_the_empty_policy_allows_no_folder_and_has_no_rules() -> None:
    policy = Policy.empty()

    assert (policy.rules, policy.working_dirs, policy.mode, policy.version) == ((), (), "default", 0)


@pytest.mark.proves("G15")
def test_a_policy_cannot_be_changed_at_any_depth() -> None:
    policy = EMPTY.adding(DENY, ["Bash(rm:*)"], USER)

    with pytest.raises(FrozenInstanceError):
        policy.mode = "plan"  # type: ignore[misc]  # what must not work
    with pytest.raises(FrozenInstanceError):
        policy.rules[0].spec = "x"  # type: ignore[misc]  # what must not work
    with pytest.raises(TypeError):
        policy.index[DENY] = policy.index[ALLOW]  # type: ignore[index]  # what must not work
    with pytest.raises(TypeError):
        policy.deny_rules["user"] = ()  # type: ignore[index]  # what must not work
    assert isinstance(policy.rules, tuple)


@pytest.mark.proves("G16")
def test_every_change_is_a_new_policy_with_the_next_version() -> None:
    first = EMPTY.adding(ALLOW, ["Read"], USER)
    second = first.with_mode("plan")
    third = second.with_directories(["/p", "/q"])

    assert [policy.version for policy in (EMPTY, first, second, third)] == [0, 1, 2, 3]
    assert (EMPTY.rules, first.mode, second.working_dirs) == ((), "default", ("/p",))


@pytest.mark.proves("G18", "G20", "G21")
def test_rules_of_all_sources_are_pooled_and_keep_their_source() -> None:
    policy = EMPTY.adding(ALLOW, ["Read"], PROJECT).adding(DENY, ["Read", "Bash("], USER)

    assert (policy.allow_rules, policy.deny_rules) == ({"project": ("Read",)}, {"user": ("Read",)})
    assert [problem.text for problem in policy.problems] == ["Bash("]


@pytest.mark.proves("G27", "G28")
@pytest.mark.parametrize("mode", ["bypassPermissions", "auto"])
def test_a_mode_that_is_not_available_cannot_be_entered(mode: str) -> None:
    assert EMPTY.with_mode(mode).mode == "default"
    allowed = EMPTY.with_availability(ALL).with_mode(mode)
    assert allowed.mode == mode
    assert allowed.with_availability(ModeAvailability()).mode == "default"


def test_manual_is_another_word_for_default_and_unknown_modes_are_refused() -> None:
    assert EMPTY.with_mode("plan").with_mode("manual").mode == "default"
    with pytest.raises(ValueError, match="no mode 'yolo'"):
        EMPTY.with_mode("yolo")


@pytest.mark.proves("G29")
def test_leaving_plan_mode_restores_the_mode_before_it() -> None:
    planning = EMPTY.with_mode("acceptEdits").with_mode("plan")

    assert planning.pre_plan_mode == "acceptEdits"
    assert planning.leaving_plan().mode == "acceptEdits"
    assert EMPTY.leaving_plan() is EMPTY
    bypassing = EMPTY.with_availability(ALL).with_mode("bypassPermissions").with_mode("plan")
    assert bypassing.with_availability(ModeAvailability()).leaving_plan().mode == "default"


def test_surroundings_are_part_of_the_policy() -> None:
    flags = ModeAvailability(bypass_available=True)

    assert EMPTY.with_availability(flags).availability == flags


@pytest.mark.parametrize(
    ("rule", "name", "mcp", "denied"),
    [
        ("Bash", "Bash", None, True),
        ("Bash(*)", "Bash", None, True),
        ("Bash(rm:*)", "Bash", None, False),
        ("*", "Read", None, True),
        ("B*", "Bash", None, True),
        ("mcp__*", "mcp__db__q", McpInfo("db", "q"), True),
        ("mcp__*", "Bash", None, False),
        ("mcp__db", "mcp__db__q", McpInfo("db", "q"), True),
        ("mcp__db", "mcp__db2__q", McpInfo("db2", "q"), False),
        ("mcp__my_server", "mcp__my_server__q", McpInfo("my server", "q"), True),
        ("mcp__a__b__c", "mcp__a__b__c", McpInfo("a", "b__c"), True),
        ("mcp__a__b__c", "mcp__a__b__c", McpInfo("a__b", "c"), True),
        ("mcp___a__c", "mcp___a__c", McpInfo("_a", "c"), True),
        ("mcp__long_1234abcd", "mcp__long_1234abcd", McpInfo("long", "name that was cut"), True),
        ("mcp__a__b__c", "mcp__a__b__d", McpInfo("a__b", "d"), False),
        ("KillShell", "TaskStop", None, True),
    ],
)
def test_a_bare_deny_takes_the_tool_away(rule: str, name: str, mcp: McpInfo | None, denied: bool) -> None:
    check: DenyFilter = EMPTY.adding(DENY, [rule], USER).denies_tool

    assert check(name, mcp) is denied


def texts(policy: Policy | UpdateProblem) -> list[str]:
    assert isinstance(policy, Policy)
    return [rule.written for rule in policy.rules]


def rules_update(kind: str, content: str, behaviour: str = "allow", destination: str = "session") -> dict[str, Any]:
    rule = {"toolName": "Bash", "ruleContent": content}
    return {"type": kind, "behavior": behaviour, "destination": destination, "rules": [rule]}


def test_rules_are_added_replaced_and_removed_at_their_destination() -> None:
    added = apply_update(EMPTY, rules_update("addRules", "npm test *"))
    assert texts(added) == ["this session: Bash(npm test *)"]
    assert isinstance(added, Policy)
    both = apply_update(added, rules_update("addRules", "make *", destination="localSettings"))
    assert isinstance(both, Policy)

    replaced = apply_update(both, rules_update("replaceRules", "ls *"))
    assert texts(replaced) == ["local settings: Bash(make *)", "this session: Bash(ls *)"]
    removed = apply_update(both, rules_update("removeRules", "npm test *"))
    assert texts(removed) == ["local settings: Bash(make *)"]
    assert texts(apply_update(both, rules_update("removeRules", "make *"))) == texts(both)


def test_a_rule_without_content_is_the_whole_tool() -> None:
    update = {"type": "addRules", "behavior": "deny", "rules": [{"toolName": "Task", "ruleContent": None}]}
    found = apply_update(EMPTY, update)

    assert isinstance(found, Policy)
    assert found.rules == (Rule("Task", "Agent", None, DENY, RuleSource("session")),)


def test_mode_and_folders_are_updated() -> None:
    planning = apply_update(EMPTY, {"type": "setMode", "mode": "plan"})
    assert isinstance(planning, Policy)
    assert planning.mode == "plan"
    assert apply_update(EMPTY, {"type": "setMode", "mode": "bypassPermissions"}) is EMPTY
    more = apply_update(EMPTY, {"type": "addDirectories", "directories": ["/q", "/p"]})
    assert isinstance(more, Policy)
    assert more.working_dirs == ("/p", "/q")
    less = apply_update(more, {"type": "removeDirectories", "directories": ["/q"]})
    assert isinstance(less, Policy)
    assert less.working_dirs == ("/p",)


@pytest.mark.parametrize(("name", "content"), [("Bash", "rm -rf"), ("bash", None), ("Shell", "x")])
@pytest.mark.parametrize("behaviour", ["deny", "ask"])
def test_a_forbidding_rule_that_comes_later_and_cannot_work_is_asked_for_until_it_is_replaced(
    name: str, content: str | None, behaviour: str
) -> None:
    rule = {"toolName": name} | ({} if content is None else {"ruleContent": content})
    update = {"type": "addRules", "behavior": behaviour, "rules": [rule]}
    narrowed = apply_update(EMPTY.adding(ALLOW, ["Bash"], RuleSource("user")), update)
    assert isinstance(narrowed, Policy)
    mended = apply_update(narrowed, {**update, "type": "replaceRules", "rules": [{"toolName": "WebFetch"}]})
    removed = apply_update(narrowed, {**update, "type": "removeRules"})
    assert isinstance(mended, Policy)
    assert isinstance(removed, Policy)

    policies = (narrowed, mended, removed)
    verdicts = [policy.decide(Bash(default_services({})), {"command": "rm -rf x"}).verdict for policy in policies]
    assert verdicts == [Verdict.ASK, Verdict.ALLOW, Verdict.ALLOW]


def test_a_rule_that_comes_later_may_be_about_a_tool_of_the_session() -> None:
    update = {"type": "addRules", "behavior": "deny", "rules": [{"toolName": "deploy"}]}

    unknown, known = apply_update(EMPTY, update), apply_update(EMPTY.with_tool_names(["deploy"]), update)

    assert isinstance(unknown, Policy)
    assert isinstance(known, Policy)
    assert [len(policy.problems) for policy in (unknown, known)] == [1, 0]


@pytest.mark.parametrize(
    ("update", "said"),
    [
        ({}, "no update of type None"),
        ({"type": "setMode", "mode": "yolo"}, "no mode 'yolo'"),
        ({"type": "setMode", "mode": 3}, "no mode 3"),
        ({"type": "addDirectories", "directories": "x"}, "not a list"),
        ({"type": "addDirectories", "directories": ["x"]}, "not an absolute path"),
        ({"type": "addRules", "behavior": "maybe", "rules": []}, "not a behavior"),
        ({"type": "addRules", "behavior": "allow", "destination": "x", "rules": []}, "not a destination"),
        ({"type": "addRules", "behavior": "allow", "destination": [], "rules": []}, "not a destination"),
        ({"type": "addRules", "behavior": "allow", "rules": 3}, "not a list"),
        ({"type": "addRules", "behavior": "allow", "rules": [3]}, "not a rule"),
        ({"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Bash", "ruleContent": 3}]}, "not a rule"),
        ({"type": "addRules", "behavior": "allow", "rules": [{"toolName": "*"}]}, "literal server"),
    ],
)
def test_a_bad_update_changes_nothing_and_says_why(update: dict[str, Any], said: str) -> None:
    found = apply_update(EMPTY, update)

    assert isinstance(found, UpdateProblem)
    assert said in found.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(["type", "behavior", "destination", "rules", "mode", "directories"])
WORDS = st.sampled_from(["addRules", "removeRules", "replaceRules", "setMode", "allow", "plan", "session"])


@given(st.dictionaries(KEYS, JSON | WORDS))
def test_every_update_gives_a_policy_or_a_problem(update: dict[str, Any]) -> None:
    assert isinstance(apply_update(EMPTY, update), Policy | UpdateProblem)


def test_policies_with_the_same_content_are_equal_whatever_their_index() -> None:
    one, two = EMPTY.adding(ALLOW, ["Read"], USER), EMPTY.adding(ALLOW, ["Read"], USER)

    assert one == two
    assert one != replace(two, version=7)

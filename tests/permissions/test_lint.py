"""Lint: rules that do not do what they look like."""

import pytest

from handrail.permissions.lint import lint
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, RuleSource
from tests.permissions.world import TOOLS as INSTALLED

TOOLS = frozenset({*INSTALLED.names, "CronCreate"})
PROJECT, USER = (
    RuleSource("project", "s.json", 1, "/p"),
    RuleSource("user", "~/.handrail/settings.json", 2, "/h/.handrail"),
)


@pytest.mark.parametrize(
    ("text", "behaviour", "source", "kind", "said"),
    [
        ("Write(src/**)", "allow", PROJECT, "never", "Edit(src/**)"),
        ("NotebookEdit(x)", "deny", PROJECT, "never", "Edit(x)"),
        ("Glob(src/**)", "deny", PROJECT, "never", "Read(src/**)"),
        ("Edit(/src/**)", "allow", USER, "mistake", "/h/.handrail"),
        ("Read(/etc/**)", "deny", PROJECT, "mistake", "//etc/**"),
        ("Read($HOME/x)", "deny", PROJECT, "mistake", "variables"),
        ("Read({a,b})", "deny", PROJECT, "mistake", "braces"),
        ("Edit", "allow", PROJECT, "mistake", "does not allow Write"),
        ("Bash(git:* push)", "allow", PROJECT, "mistake", "only at the end"),
        ("Bash(git * && ls)", "allow", PROJECT, "never", "judged in parts"),
        ("Bash(timeout 5 make *)", "allow", PROJECT, "mistake", "only runs another command"),
        ("bash(ls)", "deny", PROJECT, "malformed", "is not the name of a tool"),
        ("bash", "deny", PROJECT, "never", "Bash"),
        ("MultiEdit", "deny", PROJECT, "never", "no tool 'MultiEdit'"),
        ("Bash", "allow", PROJECT, "wide", "every command"),
        ("Bash(ls*)", "allow", PROJECT, "wide", "begin with 'ls'"),
        ("Bash(python3 *)", "allow", PROJECT, "wide", "any program"),
        ("Bash(* --help)", "allow", PROJECT, "wide", "any program"),
        ("WebFetch", "allow", PROJECT, "wide", "every host"),
        ("WebFetch(domain:*)", "allow", PROJECT, "wide", "every host"),
        ("Read(//**)", "allow", PROJECT, "wide", "everything"),
        ("Bash(rm -rf *)", "deny", PROJECT, "narrow", "add Bash(rm *) to ask"),
        ("Bash(git push --force:*)", "ask", PROJECT, "narrow", "add Bash(git push *) to ask"),
        ("Bash(rm -r*)", "deny", PROJECT, "narrow", "add Bash(rm *) to ask"),
        ("WebFetch(domain:intra*)", "allow", PROJECT, "mistake", "only hosts without a dot"),
        ("WebFetch(https://a.com/*)", "deny", PROJECT, "never", "write WebFetch(domain:a.com)"),
        ("WebFetch(domain:a.com/x)", "allow", PROJECT, "never", "write WebFetch(domain:a.com)"),
        ("Bash(", "deny", PROJECT, "malformed", "not closed"),
        ("mcp__*", "allow", PROJECT, "malformed", "literal server"),
    ],
)
def test_a_rule_that_misleads_is_found(text: str, behaviour: str, source: RuleSource, kind: str, said: str) -> None:
    found = lint(Policy.empty("/p", "/h").adding(Behaviour(behaviour), [text], source), TOOLS)

    assert [(finding.kind, finding.rule, finding.source) for finding in found] == [(kind, text, source)]
    assert said in found[0].message


@pytest.mark.parametrize(
    ("texts", "shadowed"),
    [
        ({"deny": ["Read"], "allow": ["Read(src/**)"]}, ["Read(src/**)"]),
        ({"ask": ["Read"], "allow": ["Read(src/**)"]}, ["Read(src/**)"]),
        ({"deny": ["Read"], "ask": ["Read(src/**)"]}, ["Read(src/**)"]),
        ({"deny": ["Read", "Read(src/**)"]}, ["Read(src/**)"]),
        ({"deny": ["Read(src/**)"], "allow": ["Read"]}, []),
        ({"allow": ["Read(src/**)"], "deny": ["Edit"]}, []),
        ({"ask": ["Bash(git push *)"], "allow": ["Bash(git push *)"]}, ["Bash(git push *)"]),
        ({"deny": ["Bash(git:*)"], "allow": ["Bash(git push --force *)"]}, ["Bash(git push --force *)"]),
        ({"deny": ["Bash(* --force)"], "ask": ["Bash(git * --force)"]}, ["Bash(git * --force)"]),
        ({"allow": ["Bash(npm *)", "Bash(npm run test)"]}, ["Bash(npm run test)"]),
        ({"allow": ["Bash(ls*)", "Bash(ls *)", "Bash(lsof)"]}, ["Bash(ls *)", "Bash(lsof)"]),
        ({"allow": ["Bash(ls)", "Bash(ls *)"], "deny": ["Bash(git push *)"]}, ["Bash(ls)"]),
        ({"deny": ["Bash(git push)"], "allow": ["Bash(git push *)"]}, []),
        ({"deny": ["Bash(git * --force)"], "allow": ["Bash(git push *)"]}, []),
        ({"deny": ["Bash(ls *)"], "allow": ["Bash(lsof *)"]}, []),
        ({"allow": ["Bash(git push *)"], "ask": ["Bash(git push origin *)"]}, []),
        ({"deny": ["Read(.env)"], "allow": ["Read(.env)"]}, ["Read(.env)"]),
        ({"deny": ["WebFetch(domain:a.com)"], "allow": ["WebFetch(domain:a.com)"]}, ["WebFetch(domain:a.com)"]),
    ],
)
def test_a_rule_behind_a_wider_one_is_found(texts: dict[str, list[str]], shadowed: list[str]) -> None:
    policy = Policy.empty("/p", "/h")
    for kind, rules in texts.items():
        policy = policy.adding(Behaviour(kind), rules, PROJECT)

    assert [finding.rule for finding in lint(policy, TOOLS) if finding.kind == "shadowed"] == shadowed


def test_a_rule_with_options_is_left_alone_beside_one_for_the_whole_command() -> None:
    policy = Policy.empty("/p", "/h").adding(Behaviour.DENY, ["Bash(rm -rf *)"], PROJECT)

    assert lint(policy.adding(Behaviour.ASK, ["Bash(rm *)"], PROJECT), TOOLS) == ()
    allowing = lint(policy.adding(Behaviour.ALLOW, ["Bash(rm *)"], PROJECT), TOOLS)
    assert "narrow" in [finding.kind for finding in allowing]


@pytest.mark.parametrize(
    ("text", "behaviour"),
    [
        ("Bash(npm run test *)", "allow"),
        ("Bash(ls -l *)", "allow"),
        ("Bash(* --force *)", "deny"),
        ("Edit(/src/**)", "allow"),
        ("Read(./.env)", "deny"),
        ("Bash(rm:*)", "deny"),
        ("Bash(rm -*)", "deny"),
        ("Bash(git push -*)", "deny"),
        ("Bash(git push --*)", "deny"),
        ("Bash(npm run test -- *)", "deny"),
        ("Bash(git checkout -- -f *)", "deny"),
        ("Bash(tar - *)", "deny"),
        ("Bash(git -C * push *)", "deny"),
        ("Bash(git --no-pager push *)", "deny"),
        ("WebFetch(domain:*.example.org)", "deny"),
        ("WebFetch(domain:a.*.example.org:8443)", "deny"),
        ("WebFetch(domain:localhost:3000)", "allow"),
        ("WebFetch(domain:127.0.0.1)", "deny"),
        ("WebFetch(domain:[::1]:80)", "deny"),
        ("WebFetch(domain:[::ffff:1.2.3.4])", "deny"),
        ("WebFetch(domain:[2001:*])", "deny"),
        ("WebFetch(domain:bücher.example.)", "deny"),
        ("WebFetch(domain:*)", "deny"),
        ("WebFetch(url:https://example.org/x)", "deny"),
        ("mcp__github__get_*", "allow"),
        ("Agent(Explore)", "deny"),
        ("CronCreate(durable:true)", "deny"),
        ("*", "deny"),
        ("Write(content:x)", "deny"),
    ],
)
def test_ordinary_rules_are_left_alone(text: str, behaviour: str) -> None:
    assert lint(Policy.empty("/p", "/h").adding(Behaviour(behaviour), [text], PROJECT), TOOLS) == ()

"""Parsing rules: every text gives a rule or a named problem."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.permissions.rules import Behaviour, Rule, RuleProblem, RuleSource, mcp_of, parse_rule, split_rules
from handrail.tools.tool import McpInfo

ALLOW, ASK, DENY = Behaviour.ALLOW, Behaviour.ASK, Behaviour.DENY
HERE = RuleSource("project", ".handrail/settings.json", 12)


@pytest.mark.parametrize(
    ("text", "tool", "spec"),
    [
        ("Bash", "Bash", None),
        ("Bash()", "Bash", None),
        ("Bash(*)", "Bash", None),
        (" Read ", "Read", None),
        ("Bash(npm run test:*)", "Bash", "npm run test:*"),
        ("Bash(echo (a))", "Bash", "echo (a)"),
        ("Task(Explore)", "Agent", "Explore"),
        ("KillShell", "TaskStop", None),
        ("BashOutput", "TaskOutput", None),
        ("LS", "Glob", None),
        ("mcp__srv__get_*", "mcp__srv__get_*", None),
        ("mcp__srv", "mcp__srv", None),
        ("mcp__srv(x)", "mcp__srv", "x"),
        ("mcp__fs__read(.env)", "mcp__fs__read", ".env"),
        ("mcp__my.srv__read(.env)", "mcp__my.srv__read", ".env"),
        ("WebFetch(domain:*.example.com)", "WebFetch", "domain:*.example.com"),
    ],
)
def test_a_rule_is_read(text: str, tool: str, spec: str | None) -> None:
    assert parse_rule(text, ALLOW, HERE) == Rule(text, tool, spec, ALLOW, HERE)


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("", ALLOW, "empty"),
        ("   ", DENY, "empty"),
        ("Bash(", ALLOW, "not closed"),
        ("Bash(ls", DENY, "not closed"),
        ("Bash(ls) x", ALLOW, "after the closing bracket"),
        ("(ls)", ALLOW, "names no tool"),
        ("Ba sh", ALLOW, "not the name of a tool"),
        ("Bash)", DENY, "not the name of a tool"),
        ("*", ALLOW, "literal server"),
        ("B*", ALLOW, "literal server"),
        ("mcp__*", ALLOW, "literal server"),
        ("mcp__*__get", ALLOW, "literal server"),
        ("*(x)", DENY, "takes no brackets"),
        ("mcp__*(x)", DENY, "takes no brackets"),
        ("mcp__db__q(a:b)", ALLOW, "only in deny and ask rules"),
        ("WebFetch(example.com)", ALLOW, "domain:host"),
        ("WebFetch(domain:)", DENY, "domain:host"),
        ("bash(ls)", DENY, "is not the name of a tool"),
        ("CronCreate(durable:true)", ALLOW, "only in deny and ask rules"),
        ("Read(!x)", DENY, "negated"),
        ("Read(~root/x)", DENY, "another user"),
    ],
)
def test_what_is_wrong_is_said(text: str, kind: Behaviour, said: str) -> None:
    found = parse_rule(text, kind, HERE)

    assert isinstance(found, RuleProblem)
    assert said in found.message


@pytest.mark.parametrize("text", ["*", "B*", "mcp__*", "mcp__*__get_*"])
@pytest.mark.parametrize("kind", [ASK, DENY])
def test_deny_and_ask_may_use_wildcards_anywhere(text: str, kind: Behaviour) -> None:
    assert isinstance(parse_rule(text, kind), Rule)


@given(st.text(), st.sampled_from(Behaviour))
def test_every_text_is_a_rule_or_a_problem(text: str, kind: Behaviour) -> None:
    found = parse_rule(text, kind, HERE)

    assert found.text == text
    assert isinstance(found, Rule) or found.message


@given(st.text(alphabet="Bash(Read)Edit*:~/.! mcp_WebFtchdomain\\\"'$\n[]{}"), st.sampled_from(Behaviour))
def test_texts_made_of_the_signs_of_rules_are_read_too(text: str, kind: Behaviour) -> None:
    assert isinstance(parse_rule(text, kind, HERE), Rule | RuleProblem)


@pytest.mark.proves("G21")
def test_a_rule_says_where_it_is_written() -> None:
    rule = parse_rule("Bash(rm *)", DENY, HERE)

    assert isinstance(rule, Rule)
    assert rule.written == "project settings .handrail/settings.json:12: Bash(rm *)"


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("Read,Edit Bash(git log:*)", ("Read", "Edit", "Bash(git log:*)")),
        ("Bash(git log --format=%h, x) , Read", ("Bash(git log --format=%h, x)", "Read")),
        ("", ()),
        (" , ,", ()),
        ("Bash(echo (a b), c)", ("Bash(echo (a b), c)",)),
        ("Bash(ls", ("Bash(ls",)),
    ],
)
def test_a_list_is_split_outside_brackets(text: str, rules: tuple[str, ...]) -> None:
    assert split_rules(text) == rules


def test_a_wire_name_is_split_at_the_first_double_underscore() -> None:
    assert mcp_of("mcp__db__x__y") == McpInfo("db", "x__y")
    assert mcp_of("mcp__db") is None
    assert mcp_of("Bash") is None

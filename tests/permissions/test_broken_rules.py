"""Deny and ask rules that cannot work: what they may have meant is asked for, in every mode."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from handrail.config.flags import SettingsFlags
from handrail.http.web_url import read_url
from handrail.permissions.known_tools import CONVENTIONAL, is_known, possible_tools
from handrail.permissions.mistakes import mistakes
from handrail.permissions.modes import MODES
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, Rule, parse_rule
from handrail.permissions.web import DomainIndex
from handrail.session.settings.caller_names import CallerNames
from handrail.session.settings.session_settings import SessionSettings
from handrail.tools.permission import Verdict
from tests.config.world import World
from tests.permissions.world import tool_called

CALLS: dict[str, Mapping[str, Any]] = {
    "Bash": {"command": "ls"},
    "Read": {"file_path": "a.txt"},
    "Grep": {"pattern": "x"},
    "Edit": {"file_path": "a.txt", "old_string": "a", "new_string": "b"},
    "Write": {"file_path": "a.txt", "content": "b"},
    "WebFetch": {"url": "https://example.com"},
}


@pytest.fixture
def world(tmp_path: Any) -> World:
    return World(tmp_path)


def policy_by(world: World, door: str, behaviour: str, text: str) -> Policy:
    """The policy of a session that gets a rule through one of its doors, and is told to allow everything else."""
    allow = [*CALLS, "Read(//**)"]
    flags = SettingsFlags(allowed=tuple(allow), allow_bypass=True)
    for name in ("user", "project", "policy"):
        world.write(name, {"permissions": {behaviour: [text]}} if name == door else {})
    if door == "top":
        world.write("project", {behaviour: [text]})
    given: dict[str, Any] = {"deny": {"disallowed": (text,)}, "ask": {"ask": (text,)}}[behaviour]
    if door == "flag":
        flags = SettingsFlags(allowed=flags.allowed, allow_bypass=True, **given)
    return SessionSettings(world.places, world.env, flags).policy()


def verdicts(policy: Policy, tool: str, values: Mapping[str, Any] | None = None) -> set[Verdict]:
    """What becomes of a call, over all modes."""
    call = CALLS[tool] if values is None else values
    return {policy.with_mode(mode).decide(tool_called(tool), call).verdict for mode in MODES}


@pytest.mark.parametrize(
    ("rule", "tool", "values"),
    [
        ("bash", "Bash", None),
        ("BASH(rm *)", "Bash", None),
        ("Shell", "Bash", None),
        ("run_shell_command", "Bash", None),
        ("Bash(curl", "Bash", None),
        ("Bash(curl) *", "Bash", None),
        ("Bash curl", "Bash", None),
        ("Bash(git:* push)", "Bash", {"command": "git origin push"}),
        ("Bash(rm -rf)", "Bash", {"command": "rm -rf build"}),
        ("Bash(git push)", "Bash", {"command": "git push origin main"}),
        ("bas*", "Bash", None),
        ("Read(.env", "Bash", {"command": "cat a.txt"}),
        ("Edit(a.txt", "Bash", {"command": "echo x > a.txt"}),
        ("Read(!a.txt)", "Read", None),
        ("Read(*.{txt,md})", "Read", None),
        ("Read($HOME/.ssh/**)", "Read", {"file_path": "~/.ssh/config"}),
        ("Read($SECRETS/x)", "Read", None),
        ("Read(/etc/**)", "Read", {"file_path": "/etc/hosts"}),
        ("Write(a.txt)", "Write", None),
        ("Write(a.txt)", "Edit", None),
        ("Glob(a.txt)", "Read", None),
        ("WebFetch(example.com)", "WebFetch", None),
        ("WebFetch(https://example.com/*)", "WebFetch", None),
        ("WebFetch(domain:https://me@example.com/x)", "WebFetch", None),
        ("WebFetch(domain:example.com/docs)", "WebFetch", None),
        ("WebFetch(domain:example.com:*)", "WebFetch", None),
        ("WebFetch(domain:example.com?q=*)", "WebFetch", None),
        ("WebFetch(domain:other.com, example.com)", "WebFetch", None),
        ("WebFetch(domain:.example.com)", "WebFetch", {"url": "https://docs.example.com"}),
        ("WebFetch(domain:*example*)", "WebFetch", None),
        ("WebFetch(domain:example*)", "WebFetch", None),
        ("WebFetch(domain:e?ample.com)", "WebFetch", None),
        ("WebFetch(domain:*.[e]xample.com)", "WebFetch", None),
        ("WebFetch(url:https://example.com*)", "WebFetch", None),
        ("fetch", "WebFetch", None),
        ("read_file", "Read", None),
        ("Frobnicate", "Write", None),
        ("Frobnicate", "WebFetch", None),
        ("rm -rf", "Bash", {"command": "touch x"}),
        ("", "Write", None),
        ("mcp__fs__*(x)", "mcp__fs__read", {}),
        ("MCP__fs", "mcp__fs__read", {}),
        ("mcp_fs", "mcp__fs__read", {}),
    ],
)
def test_what_a_broken_rule_may_have_meant_is_never_allowed(
    rule: str, tool: str, values: Mapping[str, Any] | None, world: World
) -> None:
    for behaviour in ("deny", "ask"):
        policy = policy_by(world, "project", behaviour, rule)

        assert Verdict.ALLOW not in verdicts(policy, tool, values)
        decision = policy.decide(tool_called(tool), CALLS[tool] if values is None else values)
        assert repr(rule) in decision.reason


@pytest.mark.parametrize(
    "rule",
    ["WebFetch(https://other.com/*)", "WebFetch(domain:other.com/x)", "WebFetch(domain:other.com:8443)"],
)
def test_an_address_in_a_rule_is_about_its_host_only(rule: str, world: World) -> None:
    policy = policy_by(world, "project", "deny", rule)

    assert verdicts(policy, "WebFetch") == {Verdict.ALLOW}


@pytest.mark.parametrize(
    ("rule", "tool", "asked"),
    [
        (f"WebFetch(domain:{'?' * 3_000})", "WebFetch", None),
        (f"WebFetch(domain:{'*' * 3_000})", "WebFetch", None),
        (f"WebFetch(domain:{'x' * 3_000}/, example.com)", "WebFetch", None),
        (f"WebFetch(domain:example.com,{'a.com,' * 101})", "WebFetch", None),
        (f"Read({{{',' * 3_000})", "Read", None),
        (f"Read({{{','.join(['a'] * 101)}}})", "Read", None),
        (f"Read(*.{{txt,{'m' * 3_000}}})", "Read", None),
    ],
    ids=["signs", "stars", "long address", "many hosts", "open brace", "many choices", "long choice"],
)
def test_a_rule_of_more_than_anyone_writes_is_asked_about_as_a_whole(
    rule: str, tool: str, asked: str | None, world: World
) -> None:
    policy = policy_by(world, "project", "deny", rule)

    assert [(each.tool, each.spec) for problem in policy.problems for each in problem.meant] == [(tool, asked)]
    assert Verdict.ALLOW not in verdicts(policy, tool)


@pytest.mark.parametrize(
    "rule", [" ".join(f"w{at}" for at in range(200)), "*" + "*".join(f"a{at}" for at in range(200))]
)
def test_a_rule_of_more_words_than_a_name_has_may_have_meant_any_tool(rule: str, world: World) -> None:
    policy = policy_by(world, "project", "deny", rule)

    [problem] = policy.problems
    assert problem.broad
    assert len(problem.meant) <= 100
    assert Verdict.ALLOW not in verdicts(policy, "Write")


HOSTS = ("localhost", "example.com", "a.b.example.com", "cafe", "10.0.0.1", "[2001:db8::1]", "[::ffff:1.2.3.4]")


@st.composite
def hosts_with_rules(draw: st.DrawFn) -> tuple[str, str]:
    """A host, and a domain made of it by wildcards in place of some of its letters."""
    host = draw(st.sampled_from(HOSTS))
    domain = draw(st.sampled_from((host, host.strip("[]"), host.upper(), f"{host}:443")))
    for start in draw(st.lists(st.integers(0, len(host)), max_size=3)):
        domain = domain[:start] + draw(st.sampled_from("**?")) + domain[start + draw(st.integers(0, 5)) :]
    return host, domain


@given(hosts_with_rules())
@example(("localhost", "local*"))
@example(("localhost", "*host"))
@example(("cafe", "CAF*:443"))
@example(("[::ffff:1.2.3.4]", "[::ffff:1.2.3.4]"))
@example(("[2001:db8::1]", "[2001:*]"))
def test_a_rule_that_matches_some_address_is_never_said_to_match_none(pair: tuple[str, str]) -> None:
    host, domain = pair
    rule = parse_rule(f"WebFetch(domain:{domain})", Behaviour.DENY)
    if not isinstance(rule, Rule):
        return

    matches = DomainIndex([rule]).find(read_url(f"https://{host}/"), Behaviour.DENY)

    assert not (matches and any("no address" in each.message for each in mistakes(rule, ())))


@pytest.mark.parametrize(
    ("domain", "hosts"),
    [
        ("a?.example.com", []),
        ("a.b?.example.com", []),
        ("a*.e?ample.com", []),
        ("example.com?", []),
        ("example.com?q=a.b", ["example.com"]),
        ("https://example.com/?q", ["example.com"]),
        ("me@example.com/x, https://*.example.org", ["example.com", "*.example.org"]),
    ],
)
def test_only_hosts_that_are_clear_are_taken_for_what_was_meant(domain: str, hosts: list[str]) -> None:
    rule = parse_rule(f"WebFetch(domain:{domain})", Behaviour.DENY)
    assert isinstance(rule, Rule)

    [problem] = mistakes(rule, ())

    whole_tool: list[str | None] = [None]
    assert [each.spec for each in problem.meant] == ([f"domain:{host}" for host in hosts] or whole_tool)


@pytest.mark.parametrize("rule", ["bash", "Shell(x)", "Bash(curl", "Bash(rm -rf)", "mcp__fs__*(x)", "Edit(a.txt"])
def test_what_it_cannot_have_meant_is_left_alone(rule: str, world: World) -> None:
    policy = policy_by(world, "project", "deny", rule)

    assert verdicts(policy, "Read") == {Verdict.ALLOW}


def test_what_only_reads_here_runs_when_nothing_is_known_of_a_rule(world: World) -> None:
    policy = policy_by(world, "project", "deny", "Frobnicate")

    assert verdicts(policy, "Read") == {Verdict.ALLOW}
    assert verdicts(policy, "Bash") == {Verdict.ALLOW}  # ls
    assert Verdict.ALLOW not in verdicts(policy, "Bash", {"command": "touch a"})


@pytest.mark.parametrize(
    "rule",
    [
        "mcp__later",
        "mcp__later__*",
        "*",
        "mcp__*",
        "Web*",
        "*delete*",
        "Task",
        "KillShell",
        "WebSearch",
        "MultiEdit",
        "Agent(Explore)",
        "Skill(pdf)",
        "deploy",
        "deploy(prod)",
        "Bash(rm -rf *)",
        "Read(.env)",
        "Bash(ls | wc)",
    ],
)
def test_a_rule_that_can_work_is_not_broken(rule: str, world: World) -> None:
    world.write("project", {"permissions": {"deny": [rule]}})
    names = CallerNames(frozenset(("deploy",)))

    policy = SessionSettings(world.places, world.env, names=names).policy()

    assert [problem for problem in policy.problems if problem.meant or problem.broad] == []


@pytest.mark.parametrize("name", sorted(CONVENTIONAL))
def test_every_name_of_the_conventions_is_found_in_any_case(name: str) -> None:
    assert is_known(name)
    assert name in possible_tools(name.lower())
    assert name in possible_tools(name.upper())


@st.composite
def slips(draw: st.DrawFn) -> tuple[str, str]:
    """A tool, and a rule about it with a slip in it."""
    tool = draw(st.sampled_from(sorted(CALLS)))
    name, content = tool, draw(st.sampled_from(("", "(x)", "(x *)", "(domain:a.com)", "(", "(x", "(x) y")))
    match draw(st.sampled_from(("lower", "upper", "swap", "drop", "double", "underscore", "none"))):
        case "lower":
            name = tool.lower()
        case "upper":
            name = tool.upper()
        case "swap":
            at = draw(st.integers(0, len(tool) - 2))
            name = tool[:at] + tool[at + 1] + tool[at] + tool[at + 2 :]
        case "drop":
            at = draw(st.integers(0, len(tool) - 1))
            name = tool[:at] + tool[at + 1 :]
        case "double":
            at = draw(st.integers(0, len(tool) - 1))
            name = tool[: at + 1] + tool[at:]
        case "underscore":
            name = f"{tool}_tool"
    assume(not is_known(name) or content in ("(", "(x", "(x) y"))
    return tool, name + content


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    slip=slips(),
    door=st.sampled_from(("user", "project", "policy", "top", "flag")),
    behaviour=st.sampled_from(("deny", "ask")),
)
def test_no_call_that_a_rule_with_a_slip_may_have_meant_passes_unasked_through_any_door(
    slip: tuple[str, str], door: str, behaviour: str, world: World
) -> None:
    tool, rule = slip
    assume(door != "flag" or " " not in rule)  # a flag holds a list, with blanks between its rules

    policy = policy_by(world, door, behaviour, rule)

    assert Verdict.ALLOW not in verdicts(policy, tool), rule
    assert any(problem.text == rule for problem in policy.problems)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rule=st.text(max_size=12), behaviour=st.sampled_from(("deny", "ask")))
def test_whatever_a_rule_says_a_call_that_changes_something_passes_only_if_the_rule_can_work(
    rule: str, behaviour: str, world: World
) -> None:
    assume("\0" not in rule and rule.isprintable())
    policy = policy_by(world, "project", behaviour, rule)

    works = any(each.text == rule for each in policy.rules) and not policy.problems
    known = bool(policy.problems) and not any(problem.broad for problem in policy.problems)
    assert works or known or Verdict.ALLOW not in verdicts(policy, "Write")

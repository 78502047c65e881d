"""Limits of agents: a tool in part only ever refuses more."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.permissions.agent_limits import limit_problems, limited_tools
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, RuleSource
from handrail.session.tools import builtin_loaders
from handrail.tools.permission import Verdict
from handrail.tools.stub import load_tool

POLICY = Policy.empty("/project", "/home/me").adding(Behaviour.ALLOW, ["Bash(ls:*)", "Edit"], RuleSource("user"))
PARTS = [
    "ls",
    "ls -a",
    "cat a",
    "rm -r b",
    "git push",
    "X=1 ls",
    "$(ls)",
    "ls > a",
    "(ls)",
    "env ls",
    "sudo ls",
    "'ls'",
]
JOINTS = [" && ", "; ", " | ", " & ", "\n", " || "]


def verdict(policy: Policy, tool: str, **values: Any) -> Verdict:
    return policy.decide(load_tool(builtin_loaders({})[tool]()), values).verdict


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=3), st.sampled_from(JOINTS))
def test_a_limit_refuses_or_changes_nothing_and_lets_no_other_program_through(parts: list[str], joint: str) -> None:
    command = joint.join(parts)
    limited = verdict(POLICY.for_agent((("Bash(ls:*)",),), ""), "Bash", command=command)

    assert limited in (Verdict.DENY, verdict(POLICY, "Bash", command=command))
    if any("ls" not in part or "sudo" in part or ">" in part for part in parts):
        assert limited is Verdict.DENY


@pytest.mark.parametrize(
    ("tools", "tool", "values", "refused"),
    [
        (("Edit(src/**)",), "Edit", {"file_path": "/project/src/a", "old_string": "a", "new_string": "b"}, False),
        (("Edit(src/**)",), "Edit", {"file_path": "/project/a", "old_string": "a", "new_string": "b"}, True),
        (("Edit(src/**)",), "Edit", {"file_path": "/project/src/../a", "old_string": "a", "new_string": "b"}, True),
        (("Write(src/**)",), "Write", {"file_path": "/project/src/a", "content": ""}, False),
        (("Write(src/**)",), "Write", {"file_path": "/project/b", "content": ""}, True),
        (("Grep(src/**)",), "Grep", {"pattern": "a", "path": "/project"}, True),
        (("Bash(ls:*)", "Bash"), "Bash", {"command": "id"}, False),
        (("Bash(ls", "Read"), "Bash", {"command": "ls"}, True),
        (("Bash(ls:*)",), "Write", {"file_path": "/project/b", "content": ""}, False),
    ],
)
def test_forms_with_brackets_limit_the_tool_that_they_name(
    tools: tuple[str, ...], tool: str, values: dict[str, Any], refused: bool
) -> None:
    assert (verdict(POLICY.for_agent((tools,), ""), tool, **values) is Verdict.DENY) is refused


def test_a_form_that_cannot_work_is_named_and_still_a_limit() -> None:
    assert limited_tools(("Bash(ls", "Read", "Task(a)")) == {"Bash": ("Bash(ls",), "Agent": ("Task(a)",)}
    assert limit_problems(("Bash(ls", "Read")) == ("'Bash(ls': the bracket is not closed; add )",)

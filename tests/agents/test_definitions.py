"""Sub-agents as files and programs define them, and the heads of Markdown files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.agents.definitions import BUILT_IN, AgentDefinition, parse_file, parse_json
from handrail.files.frontmatter import MarkdownFile, parse_frontmatter
from handrail.session.tools import only_reads

REVIEWER = """---
name: reviewer
description: Reviews a diff
tools: Read, Grep, Bash(git diff *, --stat)
model: inherit
maxTurns: 4
---
You review code.
"""


def test_a_file_defines_an_agent() -> None:
    made = parse_file(REVIEWER, "reviewer.md")
    assert made == AgentDefinition(
        "reviewer",
        "Reviews a diff",
        "You review code.",
        ("Read", "Grep", "Bash(git diff *, --stat)"),
        model="inherit",
        max_turns=4,
        source="reviewer.md",
        origin="user",
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no head at all", "an agent needs a name"),
        ("---\nname: x\n---\nbody", "has no description"),
        ("---\nname: a:b\ndescription: d\n---\n", "cannot be the name"),
        ("---\nname: x\ndescription: d\n", "does not end"),
    ],
)
def test_a_file_that_defines_none_says_why(text: str, why: str) -> None:
    made = parse_file(text, "x.md")
    assert isinstance(made, str)
    assert made.startswith("x.md: ")
    assert why in made


def test_a_program_defines_an_agent() -> None:
    value = {"description": "d", "prompt": "p", "tools": ["Read"], "model": "haiku", "maxTurns": 2}
    assert parse_json("x", value, "options") == AgentDefinition(
        "x", "d", "p", ("Read",), model="haiku", max_turns=2, source="options", origin="flags"
    )


@pytest.mark.parametrize(
    "value", [None, 3, {}, {"description": "d"}, {"prompt": "p"}, {"description": 1, "prompt": "p"}]
)
def test_a_program_that_defines_none_is_told_why(value: object) -> None:
    assert isinstance(parse_json("x", value, "options"), str)


@pytest.mark.parametrize(
    ("field", "why"), [("effort: hard", "has the effort 'hard'"), ("isolation: remote", "has the isolation 'remote'")]
)
def test_a_field_that_would_have_no_effect_is_an_error(field: str, why: str) -> None:
    found = parse_file(f"---\nname: x\ndescription: d\n{field}\n---\nbody", "x.md")
    assert isinstance(found, str)
    assert why in found


def test_files_say_how_hard_where_and_when_an_agent_works() -> None:
    text = "---\nname: x\ndescription: d\neffort: low\nbackground: yes\nisolation: worktree\n---\nbody"
    found = parse_file(text, "x.md")
    assert isinstance(found, AgentDefinition)
    assert (found.effort, found.background, found.isolation) == ("low", True, "worktree")


def test_only_an_agent_whose_tools_all_read_counts_as_reading() -> None:
    assert [agent.name for agent in BUILT_IN if agent.has_only(only_reads)] == ["Explore", "Plan"]
    assert not AgentDefinition("x", "d", "p", ("Read", "Bash(ls *)")).has_only(only_reads)


@pytest.mark.parametrize(
    ("head", "values"),
    [
        ("a: b", {"a": "b"}),
        ("a:", {"a": ""}),
        ("a: [x, 'y, z', \"w\"]", {"a": ("x", "'y", "z'", "w")}),
        ('a:\n  - x\n  - "y"', {"a": ("x", "y")}),
        ("a:\n- x\n- y", {"a": ("x", "y")}),
        ("a: |\n  one\n  two\nb: c", {"a": "one\ntwo", "b": "c"}),
        ("a: >\n  one\n  two", {"a": "one two"}),
        ("a: one\n  two", {"a": "one two"}),
        ("a: 'it''s' # not this", {"a": "'it''s'"}),
        ("a: it # not this", {"a": "it"}),
        ('a: "tab\\t"', {"a": "tab\t"}),
        ("# words\n\na: b", {"a": "b"}),
    ],
)
def test_heads_are_read_as_people_write_them(head: str, values: dict[str, object]) -> None:
    assert parse_frontmatter(f"---\n{head}\n---\nbody").values == values


@given(st.text())
def test_every_text_has_a_head_and_a_body(text: str) -> None:
    assert isinstance(parse_frontmatter(text), MarkdownFile)
    assert isinstance(parse_frontmatter(f"---\n{text}\n---\nrest"), MarkdownFile)
    assert isinstance(parse_file(f"---\n{text}\n---\nrest", "x"), AgentDefinition | str)


@pytest.mark.parametrize(
    ("tools", "disallowed", "name", "may"),
    [
        (None, (), "Bash", True),
        (None, (), "Agent", True),
        (("Agent", "Read"), (), "Agent", True),
        (("Read",), (), "Bash", False),
        (("Bash(git *)",), (), "Bash", True),
        (None, ("Bash(rm *)",), "Bash", False),
        (("mcp__db",), (), "mcp__db__query", True),
        (("mcp__db",), (), "mcp__dbx__query", False),
        (("mcp__db",), (), "mcp__db", True),
        (("mcp__db__get_*",), (), "mcp__db__get_all", True),
        (("mcp__db__get_*",), (), "mcp__db__drop", False),
        (("mcp__db__query",), (), "mcp__db__query_all", False),
        (None, ("mcp__db",), "mcp__db__query", False),
        (None, ("mcp__db__*",), "mcp__db__query", False),
        (None, ("mcp__*",), "mcp__db__query", False),
        (None, ("mcp__db",), "mcp__other__query", True),
        (("*",), (), "Write", True),
        (("*",), ("Write",), "Write", False),
        ((), (), "Read", False),
        (None, ("bash",), "Bash", False),
        (None, ("Shell(rm *)",), "Bash", False),
        (None, ("deploy",), "Bash", True),
    ],
)
def test_tools_of_an_agent_are_named_one_by_one_or_by_server(
    tools: tuple[str, ...] | None, disallowed: tuple[str, ...], name: str, may: bool
) -> None:
    assert AgentDefinition("x", "d", "p", tools, disallowed).may_use(name) is may


def test_a_mode_that_does_not_exist_makes_no_agent() -> None:
    text = "---\nname: x\ndescription: d\npermissionMode: yolo\n---\n"
    assert "permissionMode 'yolo'" in str(parse_file(text, "x.md"))
    assert isinstance(parse_json("x", {"description": "d", "prompt": "p", "permissionMode": 3}, "options"), str)
    made = parse_json("x", {"description": "d", "prompt": "p", "permissionMode": "plan"}, "options")
    assert isinstance(made, AgentDefinition)
    assert made.mode == "plan"

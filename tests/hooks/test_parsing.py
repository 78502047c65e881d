"""Hooks of a settings file: nothing is lost in silence, and a guard that cannot run stays a guard."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.errors import HandrailError
from handrail.hooks.events import EVENTS, UNSUPPORTED
from handrail.hooks.parsing import parse_callbacks, parse_hooks
from handrail.hooks.specs import BrokenHook, CommandHook, HookCallback, HookSource, HttpHook

HERE = HookSource("project", ".handrail", "/proj/.handrail/settings.json", "/proj")


def one(handler: Any, event: str = "PreToolUse", **group: Any) -> Any:
    return {event: [{"hooks": [handler], **group}]}


def command(**more: Any) -> Any:
    return one({"type": "command", "command": "x", **more})


@pytest.mark.proves("H1")
def test_a_section_becomes_hooks_in_their_order() -> None:
    checks = [
        {"type": "command", "command": "./check.sh", "timeout": 10, "if": "Edit(*.py)"},
        {"type": "command", "command": "guard", "args": ["-x"], "onFailure": "block"},
    ]
    asking = {"type": "http", "url": "http://127.0.0.1:9/stop", "statusMessage": "Asking"}
    section = {"PreToolUse": [{"matcher": "Edit|Write", "hooks": checks}], "Stop": [{"hooks": [asking]}]}

    parsed = parse_hooks(section, HERE)

    first, second, third = parsed.hooks
    assert parsed.problems == ()
    assert (first.handler, first.timeout, first.at) == (CommandHook("./check.sh"), 10.0, "hooks.PreToolUse[0].hooks[0]")
    assert first.condition is not None
    assert first.condition.text == "Edit(*.py)"
    assert (second.handler, second.blocks_on_failure, second.timeout) == (CommandHook("guard", ("-x",)), True, 600.0)
    assert (third.handler, third.status) == (HttpHook("http://127.0.0.1:9/stop"), "Asking")
    assert first.place == "project settings /proj/.handrail/settings.json: hooks.PreToolUse[0].hooks[0]"


GROUP, HANDLER = "hooks.PreToolUse[0]", "hooks.PreToolUse[0].hooks[0]"
MALFORMED = [
    pytest.param([], "hooks", "not an object of events", id="a list"),
    pytest.param({"PreToolUse": {}}, "hooks.PreToolUse", "not a list of groups", id="no list"),
    pytest.param({"PreToolUse": ["x"]}, GROUP, "not a group", id="no group"),
    pytest.param({"PreToolUse": [{"matcher": "X"}]}, GROUP, "hooks is None", id="no hooks"),
    pytest.param(one(7), HANDLER, "not a hook", id="a number"),
    pytest.param(one({}), HANDLER, "type is missing", id="no type"),
    pytest.param(one({"type": "shell"}), HANDLER, "no hooks of type 'shell'", id="unknown type"),
    pytest.param(command(command=" "), HANDLER, "cannot be run", id="blank command"),
    pytest.param(command(command="a\0b"), HANDLER, "cannot be run", id="NUL"),
    pytest.param(command(args="y"), HANDLER, "list of texts", id="args"),
    pytest.param(command(timeout=0), HANDLER, "timeout is 0", id="no time"),
    pytest.param(command(timeout=True), HANDLER, "timeout is True", id="a flag as time"),
    pytest.param(command(shell="powershell"), HANDLER, "not one of sh, bash", id="shell"),
    pytest.param(command(**{"if": "Bash("}), HANDLER, "the bracket is not closed", id="if"),
    pytest.param(command(**{"if": 7}), HANDLER, "not a permission rule", id="if is a number"),
    pytest.param(command(**{"async": "yes"}), HANDLER, "neither true nor false", id="async"),
    pytest.param(command(onFailure="ignore"), HANDLER, "not one of continue, block", id="onFailure"),
    pytest.param(one({"type": "http", "url": "ftp://x/"}), HANDLER, "write http://", id="scheme"),
    pytest.param(one({"type": "http", "url": "http://a:b@x/"}), HANDLER, "password", id="password"),
    pytest.param(one({"type": "http", "url": "http://x:99999/"}), HANDLER, "Port", id="port"),
    pytest.param(one({"type": "http", "url": "http://x/", "headers": {"a\nb": "c"}}), HANDLER, "header", id="header"),
    pytest.param(one({"type": "http", "url": "http://x/", "allowedEnvVars": 1}), HANDLER, "list of names", id="vars"),
    pytest.param(one({"type": "command"}), HANDLER, "command is missing", id="no command"),
    pytest.param(one({"type": "command", "comand": "x"}), HANDLER, "command is missing; there is 'comand'", id="typo"),
    pytest.param(one({"type": "command", "command": "x"}, matcher="("), GROUP, "regular", id="regex"),
    pytest.param(one({"type": "command", "command": "x"}, matcher=7), GROUP, "not a text", id="matcher"),
    pytest.param(one({"type": "prompt", "prompt": "ok?"}), HANDLER, "not supported", id="prompt"),
    pytest.param(one({"type": "agent", "prompt": "ok?"}), HANDLER, "not supported", id="agent"),
    pytest.param(one({"type": "mcp_tool"}), HANDLER, "not supported", id="mcp_tool"),
]


@pytest.mark.parametrize(("section", "at", "words"), MALFORMED)
@pytest.mark.proves("H2", "R2")
def test_what_is_malformed_is_named_and_before_a_tool_counts_as_a_hook_that_cannot_run(
    section: Any, at: str, words: str
) -> None:
    parsed = parse_hooks(section, HERE)

    [problem] = parsed.problems
    assert problem.at == at
    assert words in problem.message
    assert [type(hook.handler) for hook in parsed.hooks] == ([BrokenHook] if at != "hooks" else [])


def test_a_malformed_hook_of_an_event_without_a_say_is_only_reported() -> None:
    parsed = parse_hooks(one({"type": "prompt", "prompt": "?"}, "Stop"), HERE)

    assert parsed.hooks == ()
    assert [problem.kind for problem in parsed.problems] == ["unsupported"]


@pytest.mark.parametrize("name", [*sorted(UNSUPPORTED), "PostTolUse", "Bogus"])
def test_events_without_a_moment_here_are_reported(name: str) -> None:
    parsed = parse_hooks(one({"type": "command", "command": "x"}, name), HERE)

    [problem] = parsed.problems
    assert (parsed.hooks, problem.kind, problem.at) == ((), "unsupported", f"hooks.{name}")
    assert ("Did you mean PostToolUse?" in problem.message) == (name == "PostTolUse")


def test_events_inside_another_section_are_reported_with_what_to_leave_out() -> None:
    parsed = parse_hooks({"hooks": one({"type": "command", "command": "x"})}, HERE)

    [problem] = parsed.problems
    assert problem.message.endswith("Put the events here, without another 'hooks' around them.")


@pytest.mark.parametrize("name", sorted(EVENTS))
def test_old_settings_may_spell_an_event_with_a_small_first_letter(name: str) -> None:
    parsed = parse_hooks(one({"type": "command", "command": "x"}, name[0].lower() + name[1:]), HERE)

    assert ([hook.event for hook in parsed.hooks], parsed.problems) == ([name], ())


@pytest.mark.proves("R9")
def test_hooks_of_a_folder_that_is_not_trusted_are_reported_and_left_out() -> None:
    source = HookSource("project", ".handrail", "settings.json", "/proj", "untrusted")
    parsed = parse_hooks(one({"type": "command", "command": "touch PWNED"}, "SessionStart"), source)

    [problem] = parsed.problems
    words = "1 hooks (SessionStart) do not run, because the folder is not trusted; see handrail trust"
    assert (parsed.hooks, problem.kind, problem.message) == ((), "untrusted", words)


@pytest.mark.proves("R2")
def test_of_a_folder_that_changed_since_it_was_trusted_guards_stay_as_hooks_that_cannot_run() -> None:
    source = HookSource("project", ".claude", "settings.json", "/proj", "changed")
    handler = {"type": "command", "command": "touch PWNED"}

    parsed = {name: parse_hooks(one(handler, name), source).hooks for name in EVENTS}

    kinds = {name: [type(hook.handler) for hook in hooks] for name, hooks in parsed.items()}
    assert kinds == {name: [BrokenHook] if event.decides else [] for name, event in EVENTS.items()}


@pytest.mark.parametrize(
    ("handler", "event", "words", "kept"),
    [
        ({"type": "command", "command": "x", "tiemout": 3}, "PreToolUse", "'tiemout' is not known", 1),
        ({"type": "command", "command": "x", "once": True}, "PreToolUse", "'once' has a meaning", 1),
        ({"type": "command", "command": "x", "if": "Bash"}, "Stop", "never runs", 0),
    ],
)
def test_what_has_no_effect_is_said(handler: Any, event: str, words: str, kept: int) -> None:
    parsed = parse_hooks(one(handler, event), HERE)

    [problem] = parsed.problems
    assert words in problem.message
    assert len(parsed.hooks) == kept


def test_the_end_of_a_session_waits_for_a_minute_at_most() -> None:
    seconds = [
        hook.timeout
        for more in ({}, {"timeout": 5}, {"timeout": 600})
        for hook in parse_hooks(one({"type": "command", "command": "x", **more}, "SessionEnd"), HERE).hooks
    ]

    assert seconds == [1.5, 5.0, 60.0]


@pytest.mark.parametrize(
    ("callbacks", "words"),
    [
        ({"Bogus": [print]}, "no event 'Bogus'"),
        ({"Stop": [7]}, "not a function"),
        ({"PreToolUse": [HookCallback(print, "(")]}, "regular expression"),
        ({"PreToolUse": [HookCallback(print, condition="Bash(")]}, "bracket"),
    ],
)
def test_a_callback_that_cannot_work_is_refused_at_once(callbacks: Any, words: str) -> None:
    with pytest.raises(HandrailError, match=re.escape(words)):
        parse_callbacks(callbacks)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=12),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=8), children, max_size=4),
    max_leaves=12,
)
KEYS = ("type", "command", "args", "url", "headers", "timeout", "if", "async", "once", "onFailure", "shell")
LIKELY = st.sampled_from(["command", "http", "prompt", "Bash(x", "http://h/"])
HANDLERS = st.dictionaries(st.sampled_from(KEYS), JSON | LIKELY, max_size=6)
LISTS = JSON | st.lists(HANDLERS | JSON, max_size=3)
GROUPS = st.dictionaries(st.sampled_from(["matcher", "hooks", "x"]), LISTS, max_size=3)
EVENT_NAMES = st.sampled_from([*EVENTS, "Setup", "x"])
SECTIONS = JSON | st.dictionaries(EVENT_NAMES, JSON | st.lists(GROUPS | JSON, max_size=3), max_size=4)


@given(SECTIONS)
def test_every_value_gives_hooks_and_named_problems(section: Any) -> None:
    parsed = parse_hooks(section, HERE)

    broken = [hook for hook in parsed.hooks if isinstance(hook.handler, BrokenHook)]
    assert all(str(problem).startswith("project settings") and problem.message for problem in parsed.problems)
    assert {hook.at for hook in broken} <= {problem.at for problem in parsed.problems}
    assert all(hook.event in EVENTS and hook.timeout > 0 for hook in parsed.hooks)


@given(st.lists(HANDLERS | JSON, max_size=4))
def test_before_a_tool_no_entry_vanishes(handlers: list[Any]) -> None:
    parsed = parse_hooks({"PreToolUse": [{"hooks": handlers}]}, HERE)

    assert len(parsed.hooks) == len(handlers)

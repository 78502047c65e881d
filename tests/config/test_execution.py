"""How calls are run, from settings and variables."""

from typing import Any

import pytest

from handrail.config.execution import DEFAULT_FEATURES, features_of, result_limits, scheduling_of, unknown_features
from handrail.config.snapshot import NO_SETTINGS, Settings
from handrail.dispatch.results import DEFAULT_LIMITS, ResultLimits
from handrail.dispatch.schedule import Scheduling
from handrail.errors import SettingsError


def settings(values: dict[str, Any], policy: dict[str, Any] | None = None) -> Settings:
    return Settings(values={**values, **(policy or {})}, policy=policy or {})


def test_without_settings_everything_is_as_usual() -> None:
    assert features_of(NO_SETTINGS, {}) == DEFAULT_FEATURES
    assert scheduling_of(NO_SETTINGS, {}) == Scheduling()
    assert result_limits(NO_SETTINGS, {}) is DEFAULT_LIMITS


@pytest.mark.proves("B3")
def test_policy_goes_before_variables_and_these_before_other_files() -> None:
    written = settings({"features": {"agents": False, "new": True}})
    env = {"HANDRAIL_FEATURES": "agents, -task-list,"}

    assert features_of(written, {}) == {
        "background",
        "plan",
        "questions",
        "schedules",
        "task-list",
        "web",
        "worktrees",
        "new",
    }
    assert features_of(written, env) == {
        "agents",
        "background",
        "plan",
        "questions",
        "schedules",
        "web",
        "worktrees",
        "new",
    }
    assert features_of(settings({}, {"features": {"agents": False}}), env) == {
        "background", "plan", "questions", "schedules", "web", "worktrees",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("section", "variable", "named"),
    [
        ({}, "", []),
        ({"agents": False}, "agents, -task-list,", []),
        ({"agent": False}, "", [("features", "'agent'")]),
        ({}, "-Background,tasklist", [("HANDRAIL_FEATURES", "'Background'"), ("HANDRAIL_FEATURES", "'tasklist'")]),
    ],
)
def test_families_that_do_not_exist_are_named_with_the_known_ones(
    section: dict[str, bool], variable: str, named: list[tuple[str, str]]
) -> None:
    found = unknown_features(settings({"features": section}), {"HANDRAIL_FEATURES": variable})

    assert found == tuple(
        f"{place} names {name}, which is not a family of tools and has no effect. "
        "Known: agents, background, plan, questions, schedules, task-list, web, worktrees."
        for place, name in named
    )


def test_scheduling_is_read_from_files_and_variables() -> None:
    section = {"earlyStart": "off", "maxParallel": 3, "maxParallelByTool": {"Bash": 1}, "siblingErrors": "all"}
    env = {
        "HANDRAIL_EARLY_START": "all",
        "HANDRAIL_MAX_PARALLEL": "4",
        "HANDRAIL_MAX_PARALLEL_BY_TOOL": "Bash=2, Read=8",
        "HANDRAIL_SIBLING_ERRORS": "isolate",
    }

    assert scheduling_of(settings({"scheduling": section}), {}) == Scheduling("off", 3, {"Bash": 1}, "all")
    by_variables = Scheduling("all", 4, {"Bash": 2, "Read": 8}, "isolate")
    assert scheduling_of(settings({"scheduling": section}), env) == by_variables
    assert scheduling_of(settings({}, {"scheduling": {"maxParallel": 1}}), env).max_parallel == 1
    assert scheduling_of(settings({"scheduling": section}), env, "safe").early_start == "safe"
    assert scheduling_of(settings({}, {"scheduling": {"earlyStart": "off"}}), env, "permitted").early_start == "off"


def test_result_limits_are_read_from_files_and_variables() -> None:
    section = {"maxChars": 500, "maxCharsByTool": {"Read": 900}, "quotaBytes": 10_000, "retentionDays": 3}
    env = {
        "HANDRAIL_MAX_RESULT_CHARS": "600",
        "HANDRAIL_MAX_RESULT_CHARS_BY_TOOL": "Bash=1000",
        "HANDRAIL_RESULT_QUOTA": "20000",
        "HANDRAIL_RESULT_DAYS": "4",
    }

    assert result_limits(settings({"results": section}), {}) == ResultLimits(10_000, 3, 500, {"Read": 900})
    assert result_limits(settings({"results": section}), env) == ResultLimits(20_000, 4, 600, {"Bash": 1_000})


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        ("HANDRAIL_MAX_PARALLEL", "many", "is 'many'. Give a whole number, 1 or more."),
        ("HANDRAIL_MAX_PARALLEL", "0", "is '0'. Give a whole number, 1 or more."),
        ("HANDRAIL_MAX_PARALLEL_BY_TOOL", "Bash", "is 'Bash'. Write it like Bash=2,Read=8."),
        ("HANDRAIL_EARLY_START", "soon", "is 'soon'. Use one of permitted, safe, off, all."),
        ("HANDRAIL_SIBLING_ERRORS", "none", "is 'none'. Use one of shell-chain, isolate, all."),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(variable: str, value: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=f"the variable {variable} {problem}"):
        scheduling_of(NO_SETTINGS, {variable: value})

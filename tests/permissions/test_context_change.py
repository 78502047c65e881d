"""What a call may change of the policy for the calls after it, with and without a person's consent."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.permissions.modes import MODES, STRICTNESS
from handrail.permissions.policy import ModeAvailability, Policy
from handrail.permissions.update import UpdateProblem, change_policy
from handrail.tools.output import ContextChange

ALL = ModeAvailability(bypass_available=True, auto_available=True)
START = Policy.empty("/project", "/home/me").with_availability(ALL).with_directories(["/project", "/more"])


def after(mode: str, change: ContextChange, *, consented: bool) -> Any:
    changed = change_policy(START.with_mode(mode), change, consented=consented)
    return changed.message if isinstance(changed, UpdateProblem) else (changed.mode, changed.working_dirs[2:])


@pytest.mark.proves("A33", "G29", "G30")
@pytest.mark.parametrize(
    ("mode", "change", "alone", "agreed"),
    [
        pytest.param("default", ContextChange(mode="plan"), ("plan", ()), ("plan", ()), id="stricter needs nobody"),
        pytest.param("default", ContextChange(mode="default"), ("default", ()), ("default", ()), id="the same mode"),
        pytest.param("auto", ContextChange(mode="manual"), ("default", ()), ("default", ()), id="another word"),
        pytest.param("default", ContextChange(mode="acceptEdits"), "only a person", ("acceptEdits", ()), id="wider"),
        pytest.param("dontAsk", ContextChange(mode="default"), "only a person", ("default", ()), id="asking is wider"),
        pytest.param("default", ContextChange(mode="yolo"), "no mode 'yolo'", "no mode 'yolo'", id="no mode"),
        pytest.param("auto", ContextChange(leave_plan=True), ("auto", ()), ("auto", ()), id="not in plan mode"),
        pytest.param("auto", ContextChange(add_directories=("/x",)), "only a person", ("auto", ("/x",)), id="a folder"),
        pytest.param(
            "default", ContextChange(add_directories=("/more/in",)), ("default", ("/more/in",)),
            ("default", ("/more/in",)), id="a folder that lies in one",
        ),
        pytest.param("default", ContextChange(add_directories=("x",)), "absolute", "absolute", id="no real path"),
        pytest.param("plan", ContextChange(cwd=Path("/more/in")), ("plan", ()), ("plan", ()), id="go inside"),
        pytest.param("plan", ContextChange(cwd=Path("/moreover")), "outside", "outside", id="go outside"),
        pytest.param(
            "plan", ContextChange(cwd=Path("/x/y"), add_directories=("/x",)), "only a person", ("plan", ("/x",)),
            id="go where consent leads",
        ),
    ],
)  # fmt: skip
def test_what_a_call_may_change(mode: str, change: ContextChange, alone: Any, agreed: Any) -> None:
    for consented, expected in ((False, alone), (True, agreed)):
        found = after(mode, change, consented=consented)
        assert expected in found if isinstance(expected, str) else expected == found


@pytest.mark.proves("G29")
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "plan"])
def test_leaving_plan_mode_restores_the_mode_before_it_with_consent_only(mode: str) -> None:
    planning = START.with_mode(mode).with_mode("plan")

    left = change_policy(planning, ContextChange(leave_plan=True), consented=True)
    refused = change_policy(planning, ContextChange(leave_plan=True), consented=False)

    assert isinstance(left, Policy)
    assert left.mode == mode
    assert isinstance(refused, UpdateProblem)


def test_a_mode_that_is_not_available_is_not_entered_even_with_consent() -> None:
    narrow = START.with_availability(ModeAvailability())

    for mode in ("bypassPermissions", "auto"):
        assert isinstance(change_policy(narrow, ContextChange(mode=mode), consented=True), UpdateProblem)


FOLDERS = st.sampled_from(["/project", "/project/a", "/more", "/morel", "/", "/x", "/x/y", "x", ""])
CHANGES = st.builds(
    ContextChange,
    cwd=st.none() | FOLDERS.map(Path),
    mode=st.sampled_from(["", *MODES, "manual", "nonsense"]),
    leave_plan=st.booleans(),
    add_directories=st.lists(FOLDERS, max_size=3).map(tuple),
)


@given(st.lists(st.sampled_from(MODES), max_size=3), st.lists(CHANGES, min_size=1, max_size=4))
def test_without_consent_no_sequence_of_changes_ever_lets_more_pass(
    modes: list[str], changes: list[ContextChange]
) -> None:
    policy = START
    for mode in modes:
        policy = policy.with_mode(mode)
    for change in changes:
        changed = change_policy(policy, change, consented=False)
        if isinstance(changed, UpdateProblem):
            continue
        assert STRICTNESS.index(changed.mode) <= STRICTNESS.index(policy.mode)
        assert all(f"{folder}/".startswith(policy.prefixes) for folder in changed.working_dirs)
        assert (changed.rules, changed.availability) == (policy.rules, policy.availability)
        policy = changed

"""In the sandbox, outside with consent, or not at all."""

from dataclasses import replace
from typing import Any

import pytest

from handrail.processes.sandbox.placement import standing, where
from handrail.processes.sandbox.settings import SandboxSettings
from handrail.processes.sandbox_contract import UNCONFINED, Standing, Where

ON = SandboxSettings(enabled=True, excluded_commands=("docker", "npm run e2e *", "make:*"))


@pytest.mark.parametrize(
    ("commands", "answer"),
    [
        pytest.param([["ls"]], Where.INSIDE, id="an ordinary command"),
        pytest.param([["docker", "ps"]], Where.OUTSIDE, id="an excluded program"),
        pytest.param([["npm", "run", "e2e", "--x"]], Where.OUTSIDE, id="an excluded beginning"),
        pytest.param([["npm", "run", "e2e-evil"]], Where.INSIDE, id="words are whole"),
        pytest.param([["make", "all"]], Where.OUTSIDE, id="the other spelling of a beginning"),
        pytest.param([["docker", "ps"], ["rm", "-rf", "x"]], Where.INSIDE, id="every program must be excluded"),
        pytest.param([["./docker", "ps"]], Where.INSIDE, id="a program of the project with that name"),
        pytest.param([], Where.INSIDE, id="no program at all"),
        pytest.param(None, Where.INSIDE, id="not understood"),
    ],
)
def test_what_is_excluded_runs_outside(commands: list[list[str]] | None, answer: Where) -> None:
    assert where(ON, commands) is answer


def test_a_wish_to_leave_is_granted_only_if_the_settings_say_so() -> None:
    assert where(ON, [["ls"]], wants_out=True) is Where.OUTSIDE
    assert where(replace(ON, allow_unsandboxed=False), [["ls"]], wants_out=True) is Where.REFUSED


def test_without_a_sandbox_everything_runs_outside() -> None:
    assert where(replace(ON, enabled=False), None) is Where.OUTSIDE


NONE_WORKS = "the sandbox is enabled, but none works here: bwrap is not installed"


@pytest.mark.parametrize(
    ("changes", "wants_out", "obstacle", "place", "spares", "said"),
    [
        pytest.param({}, False, "", Where.INSIDE, True, "", id="inside, no consent is needed"),
        pytest.param({"auto_allow": False}, False, "", Where.INSIDE, False, "", id="inside, but consent is wanted"),
        pytest.param({}, True, "", Where.OUTSIDE, False, "asks to run outside", id="leaving is asked for"),
        pytest.param(
            {"allow_unsandboxed": False}, True, "", Where.REFUSED, False, "allowUnsandboxedCommands", id="no leaving"
        ),
        pytest.param({}, False, NONE_WORKS, Where.OUTSIDE, False, "with all your rights", id="none works: asked for"),
        pytest.param(
            {"allow_unsandboxed": False},
            False,
            NONE_WORKS,
            Where.REFUSED,
            False,
            "none works",
            id="none works: refused",
        ),
        pytest.param(
            {"broken": True, "problems": ("denyRead is 1.",)}, False, "", Where.REFUSED, False, "denyRead", id="broken"
        ),
    ],
)
def test_what_a_place_means_for_consent(
    changes: dict[str, Any], wants_out: bool, obstacle: str, place: Where, spares: bool, said: str
) -> None:
    found = standing(replace(ON, **changes), [["ls"]], wants_out=wants_out, obstacle=obstacle)

    assert (found.where, found.spares) == (place, spares)
    assert said in found.reason
    assert bool(said) == bool(found.reason)


def test_an_excluded_command_needs_the_usual_consent_and_nothing_more() -> None:
    for wants_out in (False, True):
        found = standing(ON, [["docker", "ps"]], wants_out=wants_out, obstacle=NONE_WORKS)
        assert found == Standing(Where.OUTSIDE)
    assert standing(replace(ON, enabled=False), None, wants_out=True, obstacle=NONE_WORKS) is UNCONFINED

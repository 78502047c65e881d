"""In the sandbox, outside with consent, or not at all."""

from dataclasses import replace

import pytest

from handrail.processes.sandbox.settings import SandboxSettings
from handrail.processes.sandbox.where import Where, where

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

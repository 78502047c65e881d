"""The models that definition files name."""

import pytest

from handrail.providers.choose import ModelOptions
from handrail.providers.model_aliases import alias_note, model_for

CLAUDE, OTHER = "claude-sonnet-4-6", "gpt-5.2"


@pytest.mark.parametrize(
    ("wanted", "current", "model"),
    [
        ("", CLAUDE, CLAUDE),
        ("inherit", CLAUDE, CLAUDE),
        ("default", OTHER, OTHER),
        ("haiku", CLAUDE, "claude-haiku-4-5"),
        ("Opus", CLAUDE, "claude-opus-4-6"),
        ("sonnet[1m]", CLAUDE, CLAUDE),
        pytest.param("haiku", OTHER, OTHER, id="another vendor has no such family"),
        pytest.param("fable", CLAUDE, CLAUDE, id="a family that is not known here"),
        ("claude-opus-4-5", CLAUDE, "claude-opus-4-5"),
        ("gpt-5-mini", OTHER, "gpt-5-mini"),
    ],
)
def test_short_names_mean_what_the_server_has(wanted: str, current: str, model: str) -> None:
    assert model_for(wanted, current, ModelOptions(), {}) == model


def test_variables_overrides_and_the_models_that_may_be_used_count() -> None:
    env = {"ANTHROPIC_DEFAULT_HAIKU_MODEL": "small"}
    assert model_for("haiku", OTHER, ModelOptions(), env) == "small"
    assert model_for("haiku", OTHER, ModelOptions(overrides={"claude-haiku-4-5": "mine"}), env) == "mine"

    limited = ModelOptions(available=("sonnet", "haiku"))
    assert model_for("haiku", CLAUDE, limited, {}) == "claude-haiku-4-5"
    assert model_for("opus", CLAUDE, limited, {}) == CLAUDE
    assert model_for("claude-opus-4-6", CLAUDE, limited, {}) == CLAUDE


@pytest.mark.parametrize(("model", "noted"), [("opusplan", True), ("fable", True), ("haiku", False), ("gpt-5", False)])
def test_short_names_that_mean_nothing_here_are_named(model: str, *, noted: bool) -> None:
    assert bool(alias_note(model)) is noted

"""Windows and prices that variables and settings give."""

from typing import Any

import pytest

from handrail.errors import SettingsError
from handrail.loop.windows import DEFAULT_WINDOW
from handrail.providers.prices import Price
from handrail.session.models.facts import model_facts

ROWS = {
    "my": {"contextWindow": 1000, "inputPrice": 1, "outputPrice": 2},
    "my-large": {"contextWindow": 9000},
    "claude": {"contextWindow": 500_000},
}


def facts(env: dict[str, str], rows: Any = None) -> Any:
    return model_facts({"models": rows}, env)


def test_the_longest_beginning_of_a_name_counts_for_each_fact_by_itself() -> None:
    known = facts({}, ROWS)

    assert [known.window(name) for name in ("my-small", "vendor/my-large-2", "claude-x", "other")] == [
        *(1000, 9000, 500_000, DEFAULT_WINDOW),
    ]
    assert known.price("my-large") == Price(1, 2)
    assert known.price("other") is None


def test_variables_count_for_every_model() -> None:
    known = facts({"HANDRAIL_CONTEXT_WINDOW": "7000", "HANDRAIL_MODEL_PRICE": "1, 2,0.5"}, ROWS)

    assert known.window("my-large") == known.window("claude-sonnet-4-6") == 7000
    assert known.price("other") == known.price("claude-sonnet-4-6") == Price(1, 2, 0.5)


@pytest.mark.parametrize(
    ("env", "rows", "says"),
    [
        ({"HANDRAIL_CONTEXT_WINDOW": "large"}, {}, "HANDRAIL_CONTEXT_WINDOW is 'large'"),
        ({"HANDRAIL_CONTEXT_WINDOW": "0"}, {}, "number of tokens"),
        ({"HANDRAIL_MODEL_PRICE": "3"}, {}, "input and output"),
        ({"HANDRAIL_MODEL_PRICE": "nan,inf"}, {}, "input and output"),
        ({}, {"m": {"inputPrice": 1}}, "models.m in the settings lacks a price"),
    ],
)
def test_what_makes_no_sense_is_an_error_that_says_how_to_write_it(env: dict[str, str], rows: Any, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        facts(env, rows)

"""What answers cost."""

import pytest

from handrail.conversation.stream import Usage
from handrail.providers.choose import ALIASES, DEFAULT_MODELS
from handrail.providers.cost import cost_of, price_of
from handrail.providers.prices import PRICES, Price

PRICE = Price(input=2.0, output=10.0, cache_read=0.5, cache_write=4.0)


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        pytest.param(Usage(1_000_000, 100_000), 3.0, id="plain"),
        pytest.param(Usage(1_000_000, 0, 1_000_000, 1_000_000), 6.5, id="cache counted beside the input"),
        pytest.param(Usage(1_000_000, 0, 500_000, cache_in_input=True), 1.25, id="cache counted inside the input"),
        pytest.param(Usage(0, 100_000, reasoning_tokens=50_000), 1.0, id="reasoning inside the output"),
        pytest.param(
            Usage(0, 100_000, reasoning_tokens=50_000, reasoning_apart=True), 1.5, id="reasoning beside the output"
        ),
        pytest.param(Usage(output_tokens=5), None, id="input unknown"),
        pytest.param(Usage(), None, id="nothing known"),
    ],
)
def test_cost(usage: Usage, dollars: float | None) -> None:
    assert cost_of(usage, PRICE) == (None if dollars is None else pytest.approx(dollars))


def test_an_unknown_model_has_no_price() -> None:
    assert price_of("my-own-model") is None
    assert cost_of(Usage(1, 1), None) is None


@pytest.mark.parametrize(
    ("model", "row"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4"),
        ("anthropic/claude-opus-4-6", "claude-opus-4-6"),
        ("claude-opus-4-1-20250805", "claude-opus-4"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-mini", "gpt-4o-mini"),
        ("o3", "o3"),
    ],
)
def test_the_longest_row_that_fits_gives_the_price(model: str, row: str) -> None:
    assert price_of(model) == PRICES[row]


@pytest.mark.parametrize("model", ["gpt-4omni", "o30", "gpt", "gpt-5.9"])
def test_a_name_that_only_begins_alike_has_no_price(model: str) -> None:
    assert price_of(model) is None


@pytest.mark.parametrize("model", [*ALIASES.values(), *DEFAULT_MODELS.values()])
def test_every_model_that_we_name_has_a_price(model: str) -> None:
    assert price_of(model) is not None

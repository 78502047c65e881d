"""What answers used and cost."""

from handrail.conversation.stream import Usage
from handrail.loop.usage import ModelUsage, total_dollars


def test_an_answer_without_a_price_makes_the_sum_unknown() -> None:
    paid = ModelUsage().with_all(ModelUsage.of_answer(Usage(10, 5, cache_read_tokens=3), 2.0))
    assert (paid.answers, paid.tokens, paid.dollars) == (1, 18, 2.0)

    unknown = paid.with_all(ModelUsage.of_answer(Usage(1, 1), None))
    assert (unknown.answers, unknown.dollars) == (2, None)
    assert unknown.with_all(ModelUsage.of_answer(Usage(1, 1), 1.0)).dollars is None


def test_the_sum_over_models_is_unknown_if_any_part_is() -> None:
    assert total_dollars([ModelUsage(dollars=1.0), ModelUsage(dollars=2.5)]) == 3.5
    assert total_dollars([ModelUsage(dollars=1.0), ModelUsage(dollars=None)]) is None

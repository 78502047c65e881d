"""Opinions and the fold that picks the strongest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.tools.permission import Decision, Opinion, Strength, Verdict, fold

OPINIONS = st.builds(
    Opinion,
    st.sampled_from(Strength),
    st.sampled_from(Verdict),
    st.sampled_from(["hooks", "rules"]),
    st.text(max_size=5),
)


def test_without_an_opinion_a_person_has_to_be_asked() -> None:
    assert fold((), 7) == Decision(Verdict.ASK, "it may change something, so a person has to agree", (), 7)


@pytest.mark.proves("R3")
@given(st.lists(OPINIONS, max_size=6), st.integers(0, 6))
def test_nothing_overrides_a_deny(others: list[Opinion], at: int) -> None:
    deny = Opinion(Strength.DENY, Verdict.DENY, "deny rules", "never")
    opinions = (*others[:at], deny, *others[at:])

    assert fold(opinions, 0).verdict is Verdict.DENY


@given(st.lists(OPINIONS, min_size=1, max_size=6))
def test_the_strongest_decides_among_equals_the_careful_one_in_any_order(opinions: list[Opinion]) -> None:
    decision = fold(tuple(opinions), 3)
    strongest = max(opinion.strength for opinion in opinions)
    said = {opinion.verdict for opinion in opinions if opinion.strength == strongest}

    assert decision.verdict in said
    assert decision.verdict is Verdict.DENY or Verdict.DENY not in said
    assert decision.verdict is not Verdict.ALLOW or said == {Verdict.ALLOW}
    assert decision.opinions == tuple(opinions), "all opinions are kept"
    assert decision.version == 3
    assert fold(tuple(reversed(opinions)), 3).verdict is decision.verdict


# From weak to strong, as the page on permissions has it. A strength that is moved changes who wins.
ORDER = (
    "UNANSWERED", "PERSON", "CLASSIFIER", "MODE", "TOOL_ASK", "ALLOW", "PROTECTED_PATH", "ASK", "CRITICAL_PATH", "DENY",
)  # fmt: skip
CAREFUL = (Verdict.ALLOW, Verdict.ASK, Verdict.DENY)
SAID = [(strength, verdict) for strength in ORDER for verdict in CAREFUL]


def test_the_strengths_are_these_in_this_order() -> None:
    assert tuple(strength.name for strength in sorted(Strength)) == ORDER


@pytest.mark.proves("R3", "G6", "G9")
def test_of_every_pair_the_stronger_decides_and_of_equals_the_careful_one() -> None:
    for strength, verdict in SAID:
        for other, another in SAID:
            one = Opinion(Strength[strength], verdict, "one", "one")
            two = Opinion(Strength[other], another, "two", "two")
            ahead = ORDER.index(strength) - ORDER.index(other)
            careful = max(verdict, another, key=CAREFUL.index)
            expected = verdict if ahead > 0 else another if ahead < 0 else careful

            assert fold((one, two), 0).verdict is expected, (strength, verdict, other, another)
            assert fold((two, one), 0).verdict is expected, (strength, verdict, other, another)

"""A rule that is said to cover another matches whatever that one matches."""

from hypothesis import given
from hypothesis import strategies as st

from handrail.permissions.rules import Behaviour, Rule, RuleSource, parse_rule
from handrail.permissions.shell import compile_shell
from handrail.permissions.subsumption import RuleCover
from handrail.permissions.wildcards import WORD_END

SPECS = st.lists(st.sampled_from(["git", "push", "*", " ", " *", "x", "*x"]), min_size=1, max_size=5).map("".join)
FILLERS = st.lists(st.sampled_from(["", "a", "git", WORD_END, f"push{WORD_END}x"]), min_size=6, max_size=6)


def rule(spec: str, line: int) -> Rule:
    made = parse_rule(f"Bash({spec})", Behaviour.DENY, RuleSource("user", "settings.json", line))
    assert isinstance(made, Rule)
    return made


@given(SPECS.filter(str.strip), SPECS.filter(str.strip), FILLERS)
def test_what_a_covered_rule_matches_its_cover_matches_too(one: str, other: str, fillers: list[str]) -> None:
    first, second = rule(one, 1), rule(other, 2)
    if first.spec is None or second.spec is None or second not in RuleCover([first, second]).of(first):
        return
    narrow, wide = compile_shell(first.spec), compile_shell(second.spec)
    text = first.spec.replace(" ", WORD_END)
    for filler in fillers:
        text = text.replace("*", filler, 1)
    text = text.replace("*", "")

    if narrow.exact or narrow.matches(text):
        assert wide.matches(narrow.literal if narrow.exact else text)

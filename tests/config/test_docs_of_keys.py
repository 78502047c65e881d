"""The page about settings and the published schema know every key of the table, and no other."""

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import validator_for

from handrail.config.check import check_values
from handrail.config.keys import KEYS
from handrail.config.schema import build_schema

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"
ROW = re.compile(r"^\| `([^`]+)` \| [^|]+ \| [^|]+ \| (.+) \|$", re.MULTILINE)


def test_the_page_has_a_row_for_every_key_with_its_text() -> None:
    table = PAGE.read_text("utf-8").partition("## All known keys")[2]

    assert ROW.findall(table) == [(key.name, key.text) for key in KEYS]


VALUES = st.recursive(
    st.booleans() | st.integers(-3, 3) | st.sampled_from(["plan", "disable", "x", "high"]),
    lambda inner: st.lists(inner, max_size=2, unique_by=repr) | st.dictionaries(st.sampled_from(["a", "type"]), inner),
    max_leaves=4,
)
# hooks are handed on unchecked, and a single text may stand for a list that narrows
COMPARED = [key.name for key in KEYS if not key.raw and key.narrows != "always"]


@given(st.sampled_from(COMPARED), VALUES)
def test_checking_and_the_published_schema_agree(name: str, value: object) -> None:
    nested: object = value
    for step in reversed(name.split(".")):
        nested = {step: nested}
    assert isinstance(nested, dict)

    problems = check_values(nested)[1]

    assert validator_for(build_schema()).is_valid(nested) == (not problems)

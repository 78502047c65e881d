from typing import Any

import pytest

from handrail.annotations import own_annotations

KINDS = {"left": int, "right": str}


@pytest.mark.parametrize(
    "members",
    [
        pytest.param({"__annotations__": KINDS}, id="evaluated with the class, until Python 3.13"),
        pytest.param({"__annotate_func__": {1: KINDS}.__getitem__}, id="evaluated when asked for, since Python 3.14"),
        pytest.param({"__annotate__": {1: KINDS}.__getitem__}, id="by a function that was put there by hand"),
    ],
)
def test_annotations_are_found_wherever_python_keeps_them(members: dict[str, Any]) -> None:
    assert own_annotations(members) == KINDS


def test_a_class_without_annotations_of_its_own_has_none_of_its_base() -> None:
    class Base:
        left: int

    class Derived(Base):
        pass

    assert own_annotations(dict(Base.__dict__)) == {"left": int}
    assert own_annotations(dict(Derived.__dict__)) == {}

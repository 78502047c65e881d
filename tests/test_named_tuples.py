"""Named tuples behave as those of the standard library, only cheaper to make."""

import copy
import inspect
import pickle
import types
import typing
from typing import Any

import pytest

from handrail.named_tuples import NamedTuple


class Point(NamedTuple):
    """A place."""

    x: int
    y: int = 0
    name: str | None = None

    @property
    def far(self) -> bool:
        return self.x + self.y > 10

    def __str__(self) -> str:
        return f"{self.x}/{self.y}"


class Ordinary(typing.NamedTuple):
    """A place."""

    x: int
    y: int = 0
    name: str | None = None


class Empty(NamedTuple):
    pass


def test_a_named_tuple_is_made_compared_shown_and_changed_as_usual() -> None:
    point = Point(1, name="a")

    assert (point, hash(point), len(point)) == ((1, 0, "a"), hash((1, 0, "a")), 3)
    assert repr(point) == repr(Ordinary(1, name="a")).replace("Ordinary", "Point")
    assert (point._replace(y=20).far, str(point), [*point]) == (True, "1/0", [1, 0, "a"])
    assert (point._asdict(), Point._make([1, 2, None])) == ({"x": 1, "y": 0, "name": "a"}, Point(1, 2))
    assert (Point._fields, Point._field_defaults) == (Ordinary._fields, Ordinary._field_defaults)
    assert (Point.__doc__, Point.__mro__[1:]) == (Ordinary.__doc__, Ordinary.__mro__[1:])
    assert inspect.signature(Point) == inspect.signature(Ordinary)
    assert typing.get_type_hints(Point) == typing.get_type_hints(Ordinary)
    assert (Empty(), repr(Empty())) == ((), "Empty()")


def test_a_named_tuple_survives_pickling_and_copying_and_matches_patterns() -> None:
    point = Point(1, 2, "a")

    assert pickle.loads(pickle.dumps(point)) == point
    assert type(copy.deepcopy(point)) is Point
    match point:
        case Point(x, y=2):
            assert x == 1
        case _:
            pytest.fail("it did not match")


@pytest.mark.parametrize("make", [Point, Ordinary])
def test_a_named_tuple_refuses_what_does_not_fit(make: Any) -> None:
    for values, named in (((), {}), ((1, 2, "a", 4), {}), ((1,), {"z": 2})):
        with pytest.raises(TypeError):
            make(*values, **named)
    with pytest.raises(TypeError):
        make._make([1])
    with pytest.raises((TypeError, ValueError), match="unexpected field names"):  # a TypeError since Python 3.13
        make(1)._replace(z=2)
    with pytest.raises(AttributeError):
        make(1).x = 2
    with pytest.raises(AttributeError):
        make(1).other = 2


def test_a_field_without_a_default_cannot_follow_one_that_has_one() -> None:
    members = {"__annotations__": {"x": int, "y": int}, "x": 1}

    with pytest.raises(TypeError, match="without a default"):
        types.new_class("Wrong", (NamedTuple,), exec_body=lambda scope: scope.update(members))

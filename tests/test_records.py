"""Records are dataclasses in every respect that we use, only cheaper to make."""

import copy
import dataclasses
import pickle
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from handrail.records import FEW, mutable_record, record


@record
class Point:
    """A place."""

    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list)

    @property
    def far(self) -> bool:
        return self.x + self.y > 10


@dataclass(frozen=True, slots=True)
class Ordinary:
    """The same from the standard library."""

    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list)


@record
class Named(Point):
    """A place with a name."""

    name: str = "?"


@dataclass(frozen=True)
class Coloured(Point):
    """A place with a colour, made with the standard library."""

    colour: str = "red"


@record
class Checked:
    """A number that must be positive."""

    number: int

    def __post_init__(self) -> None:
        if self.number < 1:
            raise ValueError(self.number)


@record
class Nothing:
    """No fields."""


values = st.fixed_dictionaries({"x": st.integers()}, optional={"y": st.integers(), "tags": st.lists(st.text())})


@given(values, values)
def test_a_record_behaves_like_the_dataclass_of_the_same_fields(first: dict[str, Any], second: dict[str, Any]) -> None:
    one, other = Point(**first), Point(**second)
    plain, second_plain = Ordinary(**first), Ordinary(**second)

    assert repr(one) == repr(plain).replace("Ordinary", "Point")
    assert (one == other) == (plain == second_plain)
    assert dataclasses.asdict(one) == dataclasses.asdict(plain)
    assert to_json(one) == to_json(plain)
    assert dataclasses.replace(one, y=3) == Point(one.x, 3, one.tags)
    assert copy.deepcopy(one) == pickle.loads(pickle.dumps(one)) == one
    assert one.__eq__(plain) is NotImplemented


def test_records_are_frozen_and_have_no_room_for_more() -> None:
    point: Any = Point(1)

    with pytest.raises(dataclasses.FrozenInstanceError, match="Point is frozen, so 'x' cannot be changed"):
        point.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.x
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.z = 2
    assert not hasattr(point, "__dict__")


def test_records_match_by_position_and_hash_by_value() -> None:
    match Nested(Point(1, 2), "a"):
        case Nested(Point(x, y), name):
            assert (x, y, name) == (1, 2, "a")
    assert hash(Nested(1, "a")) == hash(Nested(1, "a"))
    assert Nothing() == Nothing()
    assert {Nothing(): 1}[Nothing()] == 1


@record
class Nested:
    """Holds another."""

    inner: object
    name: str


def test_factories_make_a_new_value_each_time() -> None:
    assert Point(1).tags is not Point(1).tags


def test_a_subclass_adds_its_fields_at_the_end() -> None:
    named = Named(1, 2, [], "home")

    assert (named.x, named.name, named.far, Named(9, 9).far) == (1, "home", False, True)
    assert [each.name for each in dataclasses.fields(Named)] == ["x", "y", "tags", "name"]
    assert Point(1, 2) != Named(1, 2)


@pytest.mark.parametrize("made", [0, 2 * FEW], ids=["the first records", "after many"])
def test_records_and_errors_are_the_same_from_the_first_instance_to_the_compiled_one(made: int) -> None:
    @record
    class Place:
        x: int
        y: int = 0
        tags: list[str] = field(default_factory=list)

    kept = [Place(number, tags=["a"]) for number in range(made)]

    assert [(each.x, each.y, each.tags) for each in kept] == [(number, 0, ["a"]) for number in range(made)]
    assert (Place(1, 2), Place(1, y=2), Place(y=2, x=1)) == (Place(1, 2, []),) * 3
    make: Any = Place
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        make()
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        make(1, z=1)
    with pytest.raises(TypeError, match="multiple values for argument 'x'"):
        make(1, x=1)
    with pytest.raises(TypeError, match="takes from 2 to 4 positional arguments but 5 were given"):
        make(1, 2, [], 4)


def test_a_dataclass_of_the_standard_library_may_have_a_record_as_its_base() -> None:
    made = Coloured(1, 2, ["a"], "blue")

    assert (made.x, made.y, made.tags, made.colour) == (1, 2, ["a"], "blue")
    assert dataclasses.replace(made, colour="green").colour == "green"


def test_a_record_can_check_itself() -> None:
    assert Checked(1).number == 1
    with pytest.raises(ValueError, match="0"):
        Checked(0)


def test_the_first_record_of_a_class_may_be_one_of_a_class_below_it() -> None:
    @record
    class Base:
        x: int = 1

    class Below(Base):
        """Inherits how it is made."""

    assert (Below(2).x, Base(3).x, Below().x) == (2, 3, 1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'y'"):
        Base(y=1)  # type: ignore[call-arg]  # what is being shown


@record
class Indexed:
    """Words, and what is computed from them."""

    words: tuple[str, ...]
    index: dict[str, int] = field(default_factory=dict, repr=False, compare=False)


def test_a_field_can_be_left_out_of_comparing_and_of_what_is_shown() -> None:
    one, other = Indexed(("a",), {"a": 0}), Indexed(("a",))

    assert one == other
    assert hash(one) == hash(other)
    assert one != Indexed(("b",), {"a": 0})
    assert repr(one) == "Indexed(words=('a',))"
    assert dataclasses.replace(one, words=("b",)).index == {"a": 0}


@mutable_record
class Counter:
    """Counts."""

    name: str
    count: int = 0
    seen: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.label = f"{self.name}: {self.count}"


@pytest.mark.parametrize("made", [0, 2 * FEW], ids=["the first records", "after many"])
def test_a_mutable_record_has_its_fields_and_can_be_changed(made: int) -> None:
    kept = [Counter(str(number)) for number in range(made)]
    one = Counter("a", count=2)

    one.count += 1
    one.seen.append("x")

    assert [each.label for each in kept] == [f"{number}: 0" for number in range(made)]
    assert (one.name, one.count, one.seen, one.label) == ("a", 3, ["x"], "a: 2")
    assert Counter("b").seen == []
    assert one != Counter("a", 3, ["x"])
    assert one == one  # by identity
    assert hash(one) == object.__hash__(one)
    make: Any = Counter
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
        make()

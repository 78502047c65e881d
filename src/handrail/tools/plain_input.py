"""
Inputs of built-in tools, declared like Pydantic models and filled without loading Pydantic, which takes 100 ms.

    class SleepInput(PlainInput):
        seconds: float = Field(gt=0, le=3600, description="How long to wait.")

An input whose values have exactly the declared types is taken as it is. Every other one is left to the Pydantic model
of the same fields, which converts what can be converted and says what is wrong; the schema comes from it as well.
"""

import math
from collections.abc import Callable, Mapping
from inspect import get_annotations
from types import NoneType, UnionType
from typing import (
    Any,
    ClassVar,
    Literal,
    NoReturn,
    Self,
    TypeAlias,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

from handrail.conversation.blocks import Json
from handrail.records import record

NEEDED: Any = ...
EXACT_AS_FLOAT = 2**53
KNOWN_LIMITS = frozenset({"ge", "gt", "le", "min_length", "max_length"})
UNCHECKED = frozenset({"description", "coerce_numbers_to_str"})
_ODD = object()

Check: TypeAlias = Callable[[Any], Any]
"""The value as the tool gets it, or `_ODD` if Pydantic has to look at it."""


@record
class InputField:
    """A field: its type, its name in the input, its default (`NEEDED` = none), and what Pydantic's Field is given."""

    kind: Any
    alias: str
    default: Any
    options: Mapping[str, Any]


def Field(*, default: Any = NEEDED, alias: str = "", **options: str | float) -> Any:  # noqa: N802  # known by that name
    """A field of an input; the options are those of Pydantic's function of this name."""
    return InputField(None, alias, default, options)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(Field,))
class PlainInput:
    """Base of the inputs of built-in tools: frozen, and an unknown field is an error."""

    model_fields: ClassVar[Mapping[str, InputField]] = {}
    _checks: ClassVar[Mapping[str, tuple[str, Check]]] = {}
    _defaults: ClassVar[Mapping[str, Any]] = {}
    """The default of each field, in their order; `NEEDED` where there is none."""

    def __init_subclass__(cls) -> None:
        fields = dict(cls.model_fields)
        for name, kind in get_annotations(cls).items():
            given = cls.__dict__.get(name, NEEDED)
            if isinstance(given, InputField):
                delattr(cls, name)
            else:
                given = Field(default=given)
            fields[name] = InputField(kind, given.alias or name, given.default, given.options)
        cls.model_fields = fields
        cls._checks = {each.alias: (name, _check(each.kind, each.options)) for name, each in fields.items()}
        cls._defaults = {name: each.default for name, each in fields.items()}

    def __init__(self, **values: object) -> None:
        taken = self._plain_values(values)
        if taken is None:
            raise TypeError(f"{values!r} are not values of {type(self).__name__}")
        self.__dict__.update(taken)

    @classmethod
    def take(cls, raw: Json) -> Self | None:
        """The input, if every value is exactly as declared; None = Pydantic has to look at it."""
        values = cls._plain_values(raw)
        return None if values is None else cls._of(values)

    @classmethod
    def from_pydantic(cls, values: Mapping[str, Any]) -> Self:
        """The input of the values of a Pydantic model with the same fields."""
        return cls._of({name: _from_pydantic(cls.model_fields[name].kind, value) for name, value in values.items()})

    @classmethod
    def model_construct(cls, **values: object) -> Self:
        """An input of these values, unchecked; it may lack some."""
        whole = {**cls._defaults, **values}
        return cls._of({name: whole[name] for name in cls.model_fields if whole[name] is not NEEDED})

    @classmethod
    def _of(cls, values: Mapping[str, Any]) -> Self:
        made = cls.__new__(cls)
        made.__dict__.update(values)
        return made

    @classmethod
    def _plain_values(cls, raw: Any) -> dict[str, Any] | None:
        """All values, those left out included; None if one is not exactly as declared."""
        if type(raw) is not dict:
            return None
        checks, values = cls._checks, {**cls._defaults}
        for alias, value in raw.items():
            if alias not in checks:
                return None
            name, check = checks[alias]
            values[name] = taken = check(value)
            if taken is _ODD:
                return None
        return None if NEEDED in values.values() else values

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    def __setattr__(self, name: str, _value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen, so {name!r} cannot be changed")


def _from_pydantic(kind: Any, value: Any) -> Any:
    """The value of a Pydantic model with plain inputs in the place of its models."""
    if isinstance(kind, type) and issubclass(kind, PlainInput):
        return kind.from_pydantic(vars(value))
    if get_origin(kind) is list and isinstance(value, list):
        return [_from_pydantic(get_args(kind)[0], each) for each in value]
    return value


def _check(kind: Any, options: Mapping[str, Any]) -> Check:
    """How a value of this type is taken. What is not known here is always left to Pydantic."""
    if not options.keys() <= KNOWN_LIMITS | UNCHECKED:
        return _leave
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _check_union([_check(each, options) for each in inner])
    if origin is Literal and all(type(each) is str for each in inner):
        return lambda value: value if type(value) is str and value in inner else _ODD
    if origin is list:
        return _check_list(_check(inner[0], {}), options)
    if kind == dict[str, Any]:
        return _check_object
    if isinstance(kind, type) and issubclass(kind, PlainInput):
        return _check_input(kind)
    simple = {str: _check_text, int: _check_int, float: _check_float}.get(kind)
    if simple is not None:
        return simple(options)
    return {bool: _take_bool, NoneType: _take_none}.get(kind, _leave)


def _leave(_value: Any) -> Any:
    return _ODD


def _take_bool(value: Any) -> Any:
    return value if type(value) is bool else _ODD


def _take_none(value: Any) -> Any:
    return None if value is None else _ODD


def _check_object(value: Any) -> Any:
    return dict(value) if type(value) is dict and all(map(_is_text, value)) else _ODD


def _check_union(members: list[Check]) -> Check:
    def check(value: Any) -> Any:
        for member in members:
            if (taken := member(value)) is not _ODD:
                return taken
        return _ODD

    return check


def _check_list(item: Check, options: Mapping[str, Any]) -> Check:
    least, most = options.get("min_length", 0), options.get("max_length", math.inf)

    def check(value: Any) -> Any:
        if type(value) is not list or not least <= len(value) <= most:
            return _ODD
        taken = [item(each) for each in value]
        return _ODD if _ODD in taken else taken

    return check


def _check_input(kind: type[PlainInput]) -> Check:
    def check(value: Any) -> Any:
        values = kind._plain_values(value)
        return _ODD if values is None else kind._of(values)

    return check


def _is_text(value: Any) -> bool:
    """Whether it is a text of whole characters."""
    if type(value) is not str:
        return False
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def _take_text(value: Any) -> Any:
    return value if (type(value) is str and value.isascii()) or _is_text(value) else _ODD


def _check_text(options: Mapping[str, Any]) -> Check:
    if "min_length" not in options and "max_length" not in options:
        return _take_text
    least, most = options.get("min_length", 0), options.get("max_length", math.inf)
    return lambda value: value if _is_text(value) and least <= len(value) <= most else _ODD


def _is_within(options: Mapping[str, Any]) -> Callable[[float], bool]:
    above, least, most = (options.get(name) for name in ("gt", "ge", "le"))

    def is_within(value: float) -> bool:
        return (
            (above is None or value > above) and (least is None or value >= least) and (most is None or value <= most)
        )

    return is_within


def _check_int(options: Mapping[str, Any]) -> Check:
    is_within = _is_within(options)
    return lambda value: value if type(value) is int and is_within(value) else _ODD


def _check_float(options: Mapping[str, Any]) -> Check:
    is_within = _is_within(options)

    def check(value: Any) -> Any:
        if type(value) is int and -EXACT_AS_FLOAT < value < EXACT_AS_FLOAT:
            value = float(value)
        return value if type(value) is float and math.isfinite(value) and is_within(value) else _ODD

    return check

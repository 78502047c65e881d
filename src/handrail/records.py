"""
Frozen records with slots, like `@dataclass(frozen=True, slots=True)`, at a seventh of its cost.

A starting program makes about a hundred of these classes, and the library's decorator compiles six functions for each.
This one compiles only `__init__`, once for all classes of one shape of which many instances are made. Records are
dataclasses for `replace`, `fields`, pattern matching and serialisers.
"""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError, field
from functools import cache
from inspect import get_annotations
from operator import attrgetter
from types import CodeType, FunctionType, MemberDescriptorType, SimpleNamespace
from typing import Any, TypeVar, dataclass_transform

Class = TypeVar("Class")
FEW = 40
"""So many instances are made without a compiled `__init__`."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[Class]) -> type[Class]:
    """
    The class as a frozen record of the fields that its annotations name, in their order.

    Fields of base classes come first. `field` works with a default, its factory, `repr` and `compare`, nothing else.
    `__post_init__` is called, and a dataclass of the standard library may have a record as its base.
    """
    kinds = get_annotations(cls)
    members = {name: value for name, value in cls.__dict__.items() if name not in _NOT_COPIED}
    fields: dict[str, Field[Any]] = {}
    for base in reversed(cls.__mro__[1:]):
        fields |= base.__dict__.get("__dataclass_fields__", {})
    for name, kind in kinds.items():
        fields[name] = _field(name, kind, members.pop(name, MISSING))
    members |= {
        "__init__": _first_init(fields, checked=hasattr(cls, "__post_init__")),
        "__slots__": tuple(kinds),
        "__match_args__": tuple(fields),
        "__dataclass_fields__": fields,
        "__dataclass_params__": _PARAMS,
        "_values": staticmethod(_getter(name for name, each in fields.items() if each.compare)),
        "__qualname__": cls.__qualname__,
    }
    for name, shared in _SHARED.items():
        members.setdefault(name, shared)
    new: type[Class] = type(cls)(cls.__name__, cls.__bases__, members)  # type: ignore[misc]  # slots need a new class
    return new


def _field(name: str, kind: Any, given: Any) -> Field[Any]:
    own: Field[Any] = given if isinstance(given, Field) else field(default=given)
    own.name = name
    own.type = kind
    own.kw_only = False
    own._field_type = _FIELD  # type: ignore[attr-defined]  # what marks a real field for the standard library
    return own


def _first_init(fields: dict[str, Field[Any]], *, checked: bool) -> Callable[..., None]:
    """An `__init__` that replaces itself by a compiled one: most records of a starting program are made a few times."""
    steps: list[tuple[str, Callable[[Any, Any], None], Field[Any]]] = []
    made = 0

    def init(self: Any, *values: object, **named: object) -> None:
        nonlocal made, steps
        made += 1
        steps = steps or [(name, _setter(type(self), name), each) for name, each in fields.items()]
        given, unknown = len(values), len(named)
        is_wrong = given > len(steps)
        for at, (name, put, each) in enumerate(steps):
            if at < given:
                put(self, values[at])
            elif name in named:
                put(self, named[name])
                unknown -= 1
            elif each.default_factory is not MISSING:
                put(self, each.default_factory())
            else:
                put(self, each.default)
                is_wrong = is_wrong or each.default is MISSING
        if made > FEW or is_wrong or unknown:  # the compiled one says what is wrong
            real = _init(type(self), fields, checked=checked)
            for kind in type(self).__mro__:  # another thread may have replaced it already
                if kind.__dict__.get("__init__") is init:
                    type.__setattr__(kind, "__init__", real)
            real(self, *values, **named)
        elif checked:
            self.__post_init__()

    return init


def _setter(kind: type, name: str) -> Callable[[Any, Any], None]:
    """What sets a field, frozen or not."""
    slot = getattr(kind, name, None)
    if isinstance(slot, MemberDescriptorType):
        return slot.__set__
    return lambda self, value: object.__setattr__(self, name, value)


def _init(kind: type, fields: dict[str, Field[Any]], *, checked: bool) -> Callable[..., None]:
    """The code that fills records of this shape, with the names and slots of this class."""
    scope: dict[str, Any] = {"missing": MISSING}
    defaults: list[Any] = []
    for at, (name, each) in enumerate(fields.items()):
        scope |= {f"put{at}": _setter(kind, name), f"make{at}": each.default_factory}
        if each.default is not MISSING or each.default_factory is not MISSING:
            defaults.append(each.default)
    code = _code(tuple([each.default_factory is not MISSING for each in fields.values()]), checked=checked)
    return FunctionType(code.replace(co_varnames=("self", *fields)), scope, "__init__", tuple(defaults))


@cache
def _code(shape: tuple[bool, ...], *, checked: bool) -> CodeType:
    """Fills a record with so many fields. True = there is a function that makes the default of the field."""
    lines = [
        f"  put{at}(self, make{at}() if value{at} is missing else value{at})"
        if has_factory
        else f"  put{at}(self, value{at})"
        for at, has_factory in enumerate(shape)
    ]
    if checked:
        lines.append("  self.__post_init__()")
    parameters = ", ".join(["self", *[f"value{at}" for at in range(len(shape))]])
    scope: dict[str, Any] = {}
    exec(f"def __init__({parameters}):\n" + "\n".join(lines or ["  pass"]), scope)  # noqa: S102  # of numbers alone
    code: CodeType = scope["__init__"].__code__
    return code


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._values(self) == self._values(other)


def _hash(self: Any) -> int:
    return hash(self._values(self))


def _repr(self: Any) -> str:
    shown = [name for name, each in self.__dataclass_fields__.items() if each.repr]
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{type(self).__qualname__}({values})"


def _refuse_change(self: Any, name: str, _value: Any = None) -> None:
    raise FrozenInstanceError(f"{type(self).__name__} is frozen, so {name!r} cannot be changed. Use replace().")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__match_args__]


def _restore(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__match_args__, state, strict=True):
        object.__setattr__(self, name, value)


def _getter(names: Iterable[str]) -> Callable[[Any], object]:
    compared = tuple(names)
    return attrgetter(*compared) if compared else _no_values


def _no_values(_self: Any) -> tuple[()]:
    return ()


_FIELD = dataclasses._FIELD  # type: ignore[attr-defined]  # no public name
_PARAMS = SimpleNamespace(  # read by subclasses made with the library, and by serialisers
    init=True,
    repr=True,
    eq=True,
    order=False,
    unsafe_hash=False,
    frozen=True,
    match_args=True,
    kw_only=False,
    slots=True,
    weakref_slot=False,
)
_NOT_COPIED = frozenset({"__dict__", "__weakref__"})
_SHARED: dict[str, Any] = {
    "__eq__": _equal,
    "__hash__": _hash,
    "__repr__": _repr,
    "__setattr__": _refuse_change,
    "__delattr__": _refuse_change,
    "__getstate__": _state,
    "__setstate__": _restore,
}

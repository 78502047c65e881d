"""
Frozen records with slots, like `@dataclass(frozen=True, slots=True)`, at a seventh of its cost.

A starting program makes about a hundred of these classes, and the library's decorator compiles six functions for each.
This one compiles only `__init__`, for classes of which many instances are made, and shares the others. Records are
dataclasses for `replace`, `fields`, pattern matching and serialisers.
"""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError, field
from inspect import get_annotations
from operator import attrgetter
from types import SimpleNamespace
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
    """An `__init__` that replaces itself by a compiled one: to compile it takes as long as to fill forty records."""
    names = frozenset(fields)
    needed = frozenset(name for name, each in fields.items() if _is_needed(each))
    made = 0

    def init(self: Any, *values: object, **named: object) -> None:
        nonlocal made
        made += 1
        given = dict(zip(fields, values, strict=False))
        is_wrong = len(values) > len(given) or not named.keys() <= names - given.keys()
        given |= named
        if made > FEW or is_wrong or not needed <= given.keys():  # the compiled one says what is wrong
            real = _init(fields, checked=checked)
            for kind in type(self).__mro__:  # another thread may have replaced it already
                if kind.__dict__.get("__init__") is init:
                    type.__setattr__(kind, "__init__", real)
            real(self, *values, **named)
            return
        for name, each in fields.items():
            object.__setattr__(self, name, given[name] if name in given else _default(each))
        if checked:
            self.__post_init__()

    return init


def _is_needed(each: Field[Any]) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


def _default(each: Field[Any]) -> Any:
    return each.default if each.default_factory is MISSING else each.default_factory()


def _init(fields: dict[str, Field[Any]], *, checked: bool) -> Callable[..., None]:
    scope: dict[str, Any] = {"_set": object.__setattr__, "_missing": MISSING}
    parameters, lines = [], []
    for name, each in fields.items():
        value, scope[f"_{name}"] = name, each.default
        if each.default_factory is not MISSING:
            scope[f"_{name}"] = each.default_factory
            value = f"_{name}() if {name} is _missing else {name}"
            parameters.append(f"{name}=_missing")
        else:
            parameters.append(name if each.default is MISSING else f"{name}=_{name}")
        lines.append(f"  _set(self, {name!r}, {value})")
    if checked:
        lines.append("  self.__post_init__()")
    source = f"def __init__(self, {', '.join(parameters)}):\n" + "\n".join(lines or ["  pass"])
    exec(source, scope)  # noqa: S102  # made of the names of fields alone, as the standard library does it
    init: Callable[..., None] = scope["__init__"]
    return init


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

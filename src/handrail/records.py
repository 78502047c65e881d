"""
Frozen records with slots, like `@dataclass(frozen=True, slots=True)`, at a seventh of its cost.

A starting program makes about a hundred of these classes, and the library's decorator compiles six functions for each.
This one compiles only `__init__`, once for all classes of one shape of which many instances are made. Records are
dataclasses for `replace`, `fields`, pattern matching and serialisers.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, field
from functools import cache
from operator import attrgetter
from types import CodeType, FunctionType, MemberDescriptorType, SimpleNamespace
from typing import Any, TypeVar, dataclass_transform

from handrail.annotations import own_annotations

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
    members = _SHARED | cls.__dict__.copy()
    own = own_annotations(members)
    fields = _Fields()
    bases = cls.__mro__[1:-1]
    for base in reversed(bases):
        fields.inherit(base.__dict__.get("__dataclass_fields__"))
    fields.kinds |= own
    fields.defaults |= {name: members.pop(name, MISSING) for name in own}
    checked = "__post_init__" in members or any("__post_init__" in base.__dict__ for base in bases)
    members |= {
        "__init__": _first_init(fields.defaults, checked=checked),
        "__slots__": tuple(own),
        "__match_args__": tuple(fields.defaults),
        "__dataclass_fields__": fields,
        "__dataclass_params__": _PARAMS,
        "_values": _getter(fields.defaults),
        "__qualname__": cls.__qualname__,
    }
    for name in _NOT_COPIED:
        members.pop(name, None)
    new: type[Class] = type(cls)(cls.__name__, cls.__bases__, members)  # type: ignore[misc]  # slots need a new class
    return new


@dataclass_transform(field_specifiers=(field,))
def mutable_record(cls: type[Class]) -> type[Class]:
    """The class with an `__init__` for the fields that its annotations name, without slots and compared by identity."""
    members = dict(cls.__dict__)
    defaults = {name: members.get(name, MISSING) for name in own_annotations(members)}
    for name, default in defaults.items():
        if isinstance(default, Field):
            delattr(cls, name)
    cls.__init__ = _first_init(defaults, checked=hasattr(cls, "__post_init__"))  # type: ignore[method-assign]
    return cls


class _Fields:
    """The fields of a record as a dataclass has them; each `Field` is made when all are first asked for, if ever."""

    __slots__ = ("_made", "defaults", "kinds")

    def __init__(self) -> None:
        self.kinds: dict[str, Any] = {}
        self.defaults: dict[str, Any] = {}
        """A value, `MISSING`, or the `Field` that was given."""
        self._made: dict[str, Field[Any]] | None = None

    def inherit(self, fields: "_Fields | dict[str, Field[Any]] | None") -> None:
        """Add those of a base class, which may be a dataclass of the standard library."""
        if isinstance(fields, _Fields):
            self.kinds |= fields.kinds
            self.defaults |= fields.defaults
        elif fields:
            self.kinds |= {name: each.type for name, each in fields.items()}
            self.defaults |= fields

    def __get__(self, _record: object, _kind: type | None = None) -> dict[str, Field[Any]]:
        if self._made is None:
            self._made = {name: _field(name, self.kinds[name], default) for name, default in self.defaults.items()}
        return self._made


def _field(name: str, kind: Any, given: Any) -> Field[Any]:
    own: Field[Any] = given if isinstance(given, Field) else field(default=given)
    own.name = name
    own.type = kind
    own.kw_only = False
    own._field_type = _FIELD  # type: ignore[attr-defined]  # what marks a real field for the standard library
    return own


def _default(given: Any) -> tuple[Any, Any]:
    """The default of a field and the function that makes it; `MISSING` for what there is not."""
    return (given.default, given.default_factory) if isinstance(given, Field) else (given, MISSING)


def _first_init(defaults: dict[str, Any], *, checked: bool) -> Callable[..., None]:
    """An `__init__` that replaces itself by a compiled one: most records of a starting program are made a few times."""
    steps: list[tuple[str, Callable[[Any, Any], None], Any, Any]] = []
    made = 0

    def init(self: Any, *values: object, **named: object) -> None:
        nonlocal made, steps
        made += 1
        steps = steps or [(name, _setter(type(self), name), *_default(given)) for name, given in defaults.items()]
        given, unknown = len(values), len(named)
        is_wrong = given > len(steps)
        for at, (name, put, default, make) in enumerate(steps):
            if at < given:
                put(self, values[at])
            elif name in named:
                put(self, named[name])
                unknown -= 1
            elif make is not MISSING:
                put(self, make())
            else:
                put(self, default)
                is_wrong = is_wrong or default is MISSING
        if made > FEW or is_wrong or unknown:  # the compiled one says what is wrong
            real = _init(type(self), defaults, checked=checked)
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


def _init(kind: type, defaults: dict[str, Any], *, checked: bool) -> Callable[..., None]:
    """The code that fills records of this shape, with the names and slots of this class."""
    scope: dict[str, Any] = {"missing": MISSING}
    shape: list[bool] = []
    optional: list[Any] = []
    for at, (name, given) in enumerate(defaults.items()):
        default, make = _default(given)
        scope |= {f"put{at}": _setter(kind, name), f"make{at}": make}
        shape.append(make is not MISSING)
        if default is not MISSING or make is not MISSING:
            optional.append(default)
    code = _code(tuple(shape), checked=checked)
    return FunctionType(code.replace(co_varnames=("self", *defaults)), scope, "__init__", tuple(optional))


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


def _getter(defaults: dict[str, Any]) -> object:
    """What reads the values that are compared. It is no function, or static: reading it from a record binds nothing."""
    compared = [name for name, given in defaults.items() if not isinstance(given, Field) or given.compare]
    return attrgetter(*compared) if compared else staticmethod(_no_values)


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
_NOT_COPIED = ("__dict__", "__weakref__")
_SHARED: dict[str, Any] = {
    "__eq__": _equal,
    "__hash__": _hash,
    "__repr__": _repr,
    "__setattr__": _refuse_change,
    "__delattr__": _refuse_change,
    "__getstate__": _state,
    "__setstate__": _restore,
}

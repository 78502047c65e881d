"""
`NamedTuple` of the standard library, at a sixth of its cost for each class.

The library checks each annotation and compiles a constructor for each class; a first command makes thirty of them.
Here a constructor is compiled once for each number of fields. Classes are written, checked and used as usual.
"""

from typing import TYPE_CHECKING, Any

from handrail.annotations import own_annotations

__all__ = ["NamedTuple"]

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from collections import _tuplegetter as getter
    from functools import cache
    from types import CodeType, FunctionType

    class _Meta(type):
        def __new__(cls, name: str, _bases: tuple[type, ...], members: dict[str, Any]) -> type:
            kinds = own_annotations(members)
            fields = tuple(kinds)
            defaults = {field: members.pop(field) for field in fields if field in members}
            if tuple(defaults) != fields[len(fields) - len(defaults) :]:
                raise TypeError(f"{name}: a field without a default follows one that has one")
            code = _constructor(len(fields)).replace(co_varnames=("cls", *fields))
            make = FunctionType(code, _NAMES, "__new__", tuple(defaults.values()))
            make.__qualname__, make.__annotations__ = f"{name}.__new__", kinds
            own = {field: getter(at, f"Alias for field number {at}") for at, field in enumerate(fields)}
            own |= {"__new__": make, "_fields": fields, "_field_defaults": defaults, "__match_args__": fields}
            return type(name, (tuple,), _SHARED | members | own)

    @cache
    def _constructor(count: int) -> CodeType:
        """Makes a tuple of so many values."""
        values = "".join(f"value{at}, " for at in range(count))
        scope: dict[str, Any] = {}
        exec(f"def __new__(cls, {values}): return new(cls, ({values}))", scope)  # noqa: S102  # of numbers alone
        return scope["__new__"].__code__

    def _make(cls: type, values: Any) -> Any:
        made = tuple.__new__(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
        return made

    def _replace(self: Any, /, **changes: Any) -> Any:
        made = self._make(map(changes.pop, self._fields, self))
        if changes:
            raise ValueError(f"Got unexpected field names: {list(changes)!r}")
        return made

    def _asdict(self: Any) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def _repr(self: Any) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({shown})"

    def _arguments(self: Any) -> tuple[Any, ...]:
        return tuple(self)

    _NAMES = {"new": tuple.__new__, "__builtins__": {}, "__name__": __name__}
    _SHARED = {
        "_make": classmethod(_make),
        "_replace": _replace,
        "_asdict": _asdict,
        "__repr__": _repr,
        "__getnewargs__": _arguments,
        "__slots__": (),
    }
    NamedTuple = type.__new__(_Meta, "NamedTuple", (), {})

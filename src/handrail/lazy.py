"""
Late imports and late patterns that keep their types, for what costs time at start and is not always needed.

A late import has to save more than 2 ms.

At the top of a module, where every use below it is written and checked as after a plain import:

    if TYPE_CHECKING:
        from handrail.files import undo
    else:
        undo = lazy("handrail.files.undo")

Inside a function, for one class, with its type stated:

    hooks: type[Hooks] = lazy("handrail.hooks.runner", "Hooks")

A pattern at the top of a module that starts and first calls load; a usual one takes 0.1 to 1 ms to compile:

    NAME = lazy_pattern(r"[A-Za-z_]\\w*")

A value that several threads may be the first to need:

    services = once(open_services)
"""

import re
from collections.abc import Callable
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import Any, TypeVar, cast, overload

T = TypeVar("T")

LOADING_OBJECTS, NEW_OBJECTS = 50_000, 10_000
"""
So many new objects make our program look for garbage: while it loads tools, most of which stays, and after that. To
look through 10,000 takes 2 ms; with 700, as usual, 500 conversations take half as much CPU time again.
"""


class LazyModule:
    """Stands for a module and imports it when an attribute of it is first read."""

    __slots__ = ("_module", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattribute__(self, name: str) -> Any:
        # `__getattr__` would come after a failed lookup, whose error takes ten times as long
        if name == "__class__":  # to ask what this is imports nothing
            return LazyModule
        own = object.__getattribute__
        module = own(self, "_module")
        if module is None:
            module = self._module = import_module(own(self, "_name"))
        return getattr(module, name)


@overload
def lazy(module: str) -> ModuleType: ...
@overload
def lazy(module: str, name: str) -> type[T]: ...
def lazy(module: str, name: str | None = None) -> Any:
    """The module, imported at its first use; or a class of it, imported now."""
    return LazyModule(module) if name is None else getattr(import_module(module), name)


class LazyPattern:
    """Stands for a compiled pattern and compiles it when it is first used; from then on it is as quick as that one."""

    def __init__(self, text: str, flags: int) -> None:
        self._source = text, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copies and pickles look for
            raise AttributeError(name)
        compiled = re.compile(*self._source)
        self.__dict__ |= {each: getattr(compiled, each) for each in _USES}
        return getattr(compiled, name)


_USES = (
    "findall",
    "finditer",
    "flags",
    "fullmatch",
    "groupindex",
    "groups",
    "match",
    "pattern",
    "search",
    "split",
    "sub",
    "subn",
)


def lazy_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """The pattern, compiled at its first use. It is no argument for functions of `re`: use its methods."""
    return cast("re.Pattern[str]", LazyPattern(text, flags))


def once(build: Callable[[], T]) -> Callable[[], T]:
    """A function that builds a value when it is first called, in whatever thread, and returns the same one after."""
    lock = RLock()
    built: list[T] = []

    def value() -> T:
        if not built:
            with lock:
                if not built:
                    built.append(build())
        return built[0]

    return value

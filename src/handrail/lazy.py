"""
Late imports that keep their types, for what costs more than 2 ms at start and is not always needed.

At the top of a module, where every use below it is written and checked as after a plain import:

    if TYPE_CHECKING:
        from handrail.files import undo
    else:
        undo = lazy("handrail.files.undo")

Inside a function, for one class, with its type stated:

    hooks: type[Hooks] = lazy("handrail.hooks.runner", "Hooks")
"""

from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar, overload

T = TypeVar("T")


class LazyModule(ModuleType):
    """Stands for a module and imports it when an attribute of it is first read."""

    _module: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        module = self._module
        if module is None:
            module = self._module = import_module(self.__name__)
        return getattr(module, name)


@overload
def lazy(module: str) -> ModuleType: ...
@overload
def lazy(module: str, name: str) -> type[T]: ...
def lazy(module: str, name: str | None = None) -> Any:
    """The module, imported at its first use; or a class of it, imported now."""
    return LazyModule(module) if name is None else getattr(import_module(module), name)

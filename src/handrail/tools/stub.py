"""Stubs: everything that a request says about a tool, without importing it. Calling the tool loads it."""

from collections.abc import Callable
from importlib import import_module
from threading import RLock
from typing import Any, TypeAlias

from handrail.records import record
from handrail.tools.tool import PromptView, Tool


@record
class ToolStub:
    """The name, texts and schema of a tool that are the same in every run."""

    name: str
    text: str
    schema_json: bytes
    load: Callable[[], Tool[Any]]
    module: str
    """What `load` imports; importing it early, in a thread, makes `load` quick."""
    aliases: tuple[str, ...] = ()
    search_hint: str = ""
    should_defer: bool = False
    always_load: bool = False

    mcp = None

    def prompt(self, _view: PromptView) -> str:
        return self.text

    def is_enabled(self) -> bool:
        return True


_FETCHING = RLock()


def fetch(module: str) -> Any:
    """
    Import the module of a tool, one thread at a time.

    Pydantic's modules import each other in circles, and two threads that start at different ends would meet
    half-initialised modules.
    """
    with _FETCHING:
        return import_module(module)


ListedTool: TypeAlias = Tool[Any] | ToolStub
"""A tool as a pool holds it."""


def load_tool(tool: ListedTool) -> Tool[Any]:
    """The tool itself, imported if need be."""
    return tool.load() if isinstance(tool, ToolStub) else tool

"""A stand-in: all that a request says of a tool, without the tool. Whoever calls the tool loads it."""

from collections.abc import Callable
from importlib import import_module
from threading import RLock
from typing import Any, TypeAlias

from handrail.records import record
from handrail.tools.tool import PromptView, Tool


@record
class ToolStub:
    """What is known of a tool whose name, texts and schema are the same in every run."""

    name: str
    text: str
    schema_json: bytes
    load: Callable[[], Tool[Any]]
    module: str
    """What `load` fetches; fetching it early, in a thread, makes `load` quick."""
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
    The module of a tool.

    One thread at a time: Pydantic's modules import each other in circles, and two threads that go round in opposite
    directions would meet half-made modules.
    """
    with _FETCHING:
        return import_module(module)


ListedTool: TypeAlias = Tool[Any] | ToolStub
"""A tool as a pool keeps it."""


def load_tool(tool: ListedTool) -> Tool[Any]:
    """The tool itself."""
    return tool.load() if isinstance(tool, ToolStub) else tool

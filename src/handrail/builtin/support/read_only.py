"""The base of tools that only read."""

from handrail.tools.cards import In
from handrail.tools.tool import Tool


class ReadOnlyTool(Tool[In]):
    """A tool that changes nothing, so that its calls may run beside others."""

    def is_read_only(self, args: In) -> bool:
        return True

    def is_concurrency_safe(self, args: In) -> bool:
        return True

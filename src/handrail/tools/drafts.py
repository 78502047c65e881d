"""Cards of calls whose input is still arriving."""

from handrail.conversation.partial_json import arrived_fields
from handrail.tools.cards import Card
from handrail.tools.flags import ask_tool
from handrail.tools.pool import Pool


def draft_card(pool: Pool, name: str, arrived: str) -> Card:
    """The call as its tool draws it from the beginning of its JSON; a plain card if there is no such tool."""
    tool, plain = pool.find(name), Card(name)
    if tool is None:
        return plain
    return ask_tool(tool.name, "use_card", lambda: tool.use_card(arrived_fields(arrived)), plain)

"""Takes the place of a model in a session whose calls come from another program."""

from handrail.conversation.request import Request
from handrail.errors import HandrailError
from handrail.loop.run_config import Stream


class NoModel:
    """A model that cannot be asked."""

    model = "none"

    def stream(self, request: Request) -> Stream:
        """There is no model to ask."""
        raise HandrailError("This session has no model. Use a tool that needs none, or an Agent.")

"""Which file or folder a call means."""

from handrail.builtin.services import ToolServices
from handrail.files.paths import Place, resolve
from handrail.tools.context import ToolContext


def place_of(spelling: str, ctx: ToolContext, services: ToolServices) -> Place:
    """The place that permission was decided for; without a decision, the place where the path leads now."""
    return ctx.decided_place(spelling) or resolve(spelling, str(ctx.cwd), services.home)

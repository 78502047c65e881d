"""Starting a command line in the background, for Bash and Monitor."""

from handrail.builtin.bash.permission import settled
from handrail.builtin.bash.shell import Shell
from handrail.builtin.support.background_tasks import Task, Tasks
from handrail.errors import ToolError
from handrail.processes.sandbox_contract import Where
from handrail.tools.context import ToolContext


async def background(
    shell: Shell,
    tasks: Tasks,
    kind: str,
    text: str,
    ctx: ToolContext,
    *,
    description: str = "",
    seconds: float | None = None,
    wants_out: bool = False,
) -> Task:
    """The task that runs the command line from now on."""
    standing = await settled(shell, text, ctx, wants_out=wants_out)
    inside = standing.where is Where.INSIDE
    prepared = shell.prepared(text, str(shell.start_folder(ctx.cwd)), seconds, inside=inside)
    try:
        return await tasks.start(kind, text, description, prepared.command, prepared.close)
    except OSError as error:
        prepared.close()
        raise ToolError(f"The command could not be started: {error.strerror}: {error.filename!r}.") from error

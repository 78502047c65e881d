"""Starts command lines in the background, for Bash and Monitor."""

from handrail.builtin.bash.permission import confirm_standing
from handrail.builtin.bash.shell import Shell
from handrail.builtin.support.background_tasks import BackgroundTask, BackgroundTasks, TaskRequest
from handrail.errors import ToolError
from handrail.processes.sandbox_contract import Where
from handrail.processes.start_problem import start_problem
from handrail.tools.context import ToolContext


async def start_background(
    shell: Shell,
    tasks: BackgroundTasks,
    kind: str,
    text: str,
    ctx: ToolContext,
    *,
    description: str = "",
    seconds: float | None = None,
    wants_out: bool = False,
) -> BackgroundTask:
    """Start the command line and return its task."""
    standing = await confirm_standing(shell, text, ctx, wants_out=wants_out)
    inside = standing.where is Where.INSIDE
    left_out = [name for name, _ in ctx.decision.left_out] if ctx.decision else []
    folder = str(shell.start_folder(ctx.cwd))
    prepared = await shell.prepare(text, folder, seconds, inside=inside, left_out=left_out)
    try:
        request = TaskRequest(kind, text, description, ctx.agent.id, ctx.use.id)
        return await tasks.start(request, prepared.command, prepared.close)
    except OSError as error:
        prepared.close()
        raise ToolError(f"The command could not be started: {start_problem(error)}") from error

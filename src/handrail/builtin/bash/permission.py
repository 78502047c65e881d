"""How the sandbox affects permission: a sandboxed command may need none, leaving the sandbox does."""

from handrail.builtin.bash.preconditions import Preconditions
from handrail.builtin.bash.shell import Shell
from handrail.errors import ToolError
from handrail.processes.sandbox_contract import Standing, Where
from handrail.shell.analysis import analyse
from handrail.tools.context import ToolContext
from handrail.tools.permission import Check, Verdict

SPARED = "it runs in the sandbox"


async def check_command(
    shell: Shell, needs: Preconditions, text: str, ctx: ToolContext, *, wants_out: bool = False
) -> Check:
    """A tool's own check of a command line. A line that is not understood never passes, even in the sandbox."""
    standing = await shell.standing(text, wants_out=wants_out)
    check = sandbox_check(standing, text)
    return check or await needs.check(text, str(shell.start_folder(ctx.cwd)))


def sandbox_check(standing: Standing, text: str) -> Check | None:
    """What the sandbox says of a command line: it objects, or it holds the line so that it needs no consent."""
    if (objected := objection(standing)) is not None:
        return objected
    analysis = analyse(text)
    if standing.spares and analysis.segments and not analysis.problems:
        return Check(Verdict.ALLOW, SPARED)
    return None


def objection(standing: Standing) -> Check | None:
    """The objection of the sandbox, if it has one."""
    if standing.where is Where.REFUSED:
        return Check(Verdict.DENY, standing.reason)
    if standing.where is Where.OUTSIDE and standing.reason:
        return Check(Verdict.ASK, standing.reason)
    return None


async def confirm_standing(shell: Shell, text: str, ctx: ToolContext, *, wants_out: bool = False) -> Standing:
    """Where the command line runs now that it is approved."""
    standing = await shell.standing(text, wants_out=wants_out)
    if standing.where is Where.REFUSED:
        raise ToolError(f"Nothing was run: {standing.reason}. Do it another way, or ask the user.")
    if standing.where is Where.OUTSIDE and ctx.decision and ctx.decision.reason == SPARED:
        raise ToolError("Nothing was run: it was allowed in the sandbox, which has been switched off since. Try again.")
    return standing

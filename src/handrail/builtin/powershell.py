"""PowerShell: run a command line with pwsh, where it is installed. Its commands are not analysed."""

import shutil

from handrail.builtin.bash.permission import objection
from handrail.builtin.bash.shell import Shell
from handrail.builtin.bash.tool import Bash, BashInput
from handrail.shell.model import Analysis, CommandVerdict, Reason
from handrail.tools.context import ToolContext
from handrail.tools.permission import NO_OPINION, Check

NOT_ANALYSED = Reason(CommandVerdict.NOT_UNDERSTOOD, "what PowerShell would do is not looked into", 0, 0, "", "")


class Pwsh(Shell):
    """PowerShell, non-interactive and without the user's profile."""

    name = "pwsh"
    tells_folder = False

    def find_program(self) -> str:
        return shutil.which("pwsh", path=self._services.env.get("PATH")) or ""

    def analyse(self, text: str) -> Analysis:
        return Analysis(text, text, problems=(NOT_ANALYSED,))

    def argv(self, text: str, report: int | None) -> list[str]:
        return [self.program, "-NoLogo", "-NoProfile", "-NonInteractive", "-Command", text]


class PowerShell(Bash):
    name = "PowerShell"
    search_hint = "pwsh cmdlet command terminal execute script windows"
    always_load = False
    should_defer = True
    shell = Pwsh
    language = "powershell"

    async def check_permission(self, args: BashInput, ctx: ToolContext) -> Check:
        standing = await self._shell.standing(args.command, wants_out=args.dangerouslyDisableSandbox)
        return objection(standing) or NO_OPINION

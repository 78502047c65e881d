"""A home, a project in it, a neighbour, and a sandbox around the project; commands run in it for real."""

import asyncio
import os
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from handrail.processes.run import run as run_process
from handrail.processes.sandbox.choose import MethodTrial, try_methods
from handrail.processes.sandbox.confine import CommandSandbox
from handrail.processes.sandbox.domains import Public
from handrail.processes.sandbox.plan import Protected
from handrail.processes.sandbox.settings import SandboxSettings, read_settings
from handrail.processes.sandbox_contract import WrappedCommand

PROTECTED = Protected(
    project=(".handrail", ".claude", ".vscode", ".mcp.json", ".envrc", ".gitmodules"),
    home=(".bashrc", ".profile", ".config/systemd", "bin"),
)
SECRET = "the-secret-of-the-owner"


@dataclass
class Box:
    """Real folders below a temporary one."""

    root: Path
    section: dict[str, object] = field(default_factory=dict)
    method: MethodTrial | None = None
    public: Public = lambda _address: False
    unprivileged: bool = False
    """Start the commands as an ordinary user; only root can."""

    def __post_init__(self) -> None:
        self.home, self.project = self.root / "home", self.root / "home" / "project"
        self.state, self.outside = self.root / "state", self.root / "outside"
        for folder in (self.project / "src", self.home / ".ssh", self.outside, self.state):
            folder.mkdir(parents=True, exist_ok=True)
        (self.home / ".ssh" / "id_ed25519").write_text(SECRET)
        (self.home / "notes.txt").write_text(SECRET)
        (self.home / ".bashrc").write_text("# mine\n")
        (self.state / "trust.json").write_text(SECRET)
        (self.outside / "file.txt").write_text("old\n")
        (self.project / "src" / "main.py").write_text("print('hello')\n")

    @property
    def settings(self) -> SandboxSettings:
        return read_settings({"enabled": True, **self.section}, folder=str(self.project), home=str(self.home))

    def sandbox(self) -> CommandSandbox:
        return CommandSandbox(
            self.settings,
            home=str(self.home),
            working_dirs=lambda: (str(self.project),),
            state=self.state / "session",
            protected=PROTECTED,
            own=(str(self.state), str(self.home / ".handrail")),
            public=self.public,
            method=self.method,
        )

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        """Outside the sandbox, without the settings of the user who runs the tests."""
        config = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        who = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main"]
        done = subprocess.run(
            ["git", *who, *arguments],
            cwd=cwd or self.project,
            env={**os.environ, **config},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def run(self, script: str, *, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """One command line in a sandbox of its own."""
        with closing(self.sandbox()) as sandbox:
            return run(sandbox, script, cwd or self.project, unprivileged=self.unprivileged)


def changed(changes: dict[str, str | None], home: Path) -> dict[str, str]:
    merged: dict[str, str | None] = {**os.environ, "HOME": str(home), **changes}
    return {name: value for name, value in merged.items() if value is not None}


def run(
    sandbox: CommandSandbox, script: str, cwd: Path, *, unprivileged: bool = False
) -> subprocess.CompletedProcess[str]:
    """The script under `sh` in the sandbox; standard error goes to standard output."""
    with closing(sandbox.wrap(["sh", "-c", script], str(cwd))) as wrapped:
        if wrapped.restrictions:
            return asyncio.run(restricted(wrapped, cwd))
        return subprocess.run(
            wrapped.argv,
            cwd=cwd,
            env=environment(wrapped, cwd),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=30,
            check=False,
            pass_fds=wrapped.pass_fds,
            user=1234 if unprivileged else None,
            group=1234 if unprivileged else None,
            extra_groups=[] if unprivileged else None,
        )


async def restricted(wrapped: WrappedCommand, cwd: Path) -> subprocess.CompletedProcess[str]:
    """What restricts itself is started by a reaper."""
    script = ["sh", "-c", f"exec 2>&1; {wrapped.argv[-1]}"]
    ended = await run_process(
        script,
        cwd=str(cwd),
        env=environment(wrapped, cwd),
        timeout=30,
        max_bytes=1 << 20,
        restrictions=wrapped.restrictions,
    )
    assert not ended.timed_out
    return subprocess.CompletedProcess(script, ended.code, ended.stdout.decode())


def environment(wrapped: WrappedCommand, home: Path) -> dict[str, str]:
    return {**changed(dict(wrapped.env), home), "GIT_CONFIG_GLOBAL": os.devnull, "PYTHON": sys.executable}


def method(name: str) -> MethodTrial | None:
    """The method of this name, if it works here."""
    return next((each for each in try_methods() if each.method.value == name and each.works), None)

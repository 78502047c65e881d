"""A small file system that stands for /home/dev, and calls judged in it."""

import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from handrail.cli.permissions.calls import AbsentTool, KnownTools
from handrail.conversation.blocks import ToolUse
from handrail.files.paths import exists, list_folder, locate, match_files, resolve
from handrail.permissions.case import Case, make_case
from handrail.permissions.facts import Facts, facts_of
from handrail.permissions.file_access import Lookup
from handrail.permissions.layers import decide, outcome
from handrail.permissions.policy import ModeAvailability, Policy
from handrail.permissions.rules import Behaviour, RuleSource
from handrail.session.tools import builtin_loaders
from handrail.tools.access import Access
from handrail.tools.context import RunContext
from handrail.tools.permission import Decision
from handrail.tools.pool import AnyTool
from handrail.tools.raw import RawTool
from handrail.tools.request import CallRequest

LOOKUP = Lookup(resolve, locate, match_files, exists, list_folder)
CORPUS = Path(__file__).parent / "corpus"
HOME = "/home/dev"
PROJECT = "/home/dev/proj"
ALL_MODES = ModeAvailability(bypass_available=True, auto_available=True)


class ExitPlanMode(RawTool):
    """A tool to come, which only keeps our books."""

    def __init__(self) -> None:
        super().__init__("ExitPlanMode", {"type": "object"})

    def access(self, args: Any, run: RunContext) -> Access:
        return Access.bookkeeping()


TOOLS = KnownTools(builtin_loaders(os.environ))


def tool_called(name: str) -> AnyTool:
    """The tool of that name; one that declares nothing if there is none."""
    return TOOLS.find(name) or AbsentTool(name)


def declared(use: ToolUse, cwd: str = "/", facts: Facts | None = None) -> Facts:
    """These facts, with what the tool of the call declares."""
    tool = ExitPlanMode() if use.name == "ExitPlanMode" else tool_called(use.name)
    own = facts_of(CallRequest.hypothetical(use, tool, RunContext(Path(cwd))))
    if facts is None:
        return own
    return replace(
        facts,
        access=own.access,
        matches=own.matches,
        subject=own.subject,
        read_only=facts.read_only or own.read_only,
        warnings=facts.warnings or own.warnings,
    )


def lines(name: str) -> list[Any]:
    return [json.loads(line) for line in (CORPUS / f"{name}.jsonl").read_text().splitlines()]


@dataclass
class World:
    """Paths under /home are kept below `root`; all others are the machine's own."""

    root: Path
    cwd: str = PROJECT
    home: str = HOME
    working_dirs: Sequence[str] = (PROJECT,)
    mode: str = "default"
    rules: Mapping[str, Sequence[str]] = field(default_factory=dict)
    source_dir: str = ""
    kept: Sequence[str] = ()
    own: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.root = Path(os.path.realpath(self.root))
        for folder in (self.home, self.cwd, *self.working_dirs, f"{PROJECT}/src"):
            Path(self.at(folder)).mkdir(parents=True, exist_ok=True)

    def at(self, path: str) -> str:
        return f"{self.root}{path}" if path == "/home" or path.startswith("/home/") else path

    def link(self, name: str, target: str) -> None:
        path = Path(self.at(name if name.startswith("/") else f"{PROJECT}/{name}"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(self.at(target))

    def file(self, name: str, text: str = "") -> Path:
        path = Path(self.at(name if name.startswith("/") else f"{PROJECT}/{name}"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def socket(self, name: str) -> None:
        where = Path.cwd()
        os.chdir(self.at(PROJECT))  # the name of a socket may not be long
        try:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(name)
        finally:
            os.chdir(where)

    def build(self, fs: Mapping[str, Any]) -> None:
        for name, target in fs.get("symlinks", {}).items():
            self.link(name, target)
        for name in fs.get("sockets", ()):
            self.socket(name)
        for name in (*fs.get("pipes", ()), *fs.get("fifos", ())):
            os.mkfifo(self.at(f"{PROJECT}/{name}"))
        for name in fs.get("hardlinks", {}):
            os.link(self.file(fs["hardlinks"][name]), self.at(f"{PROJECT}/{name}"))
        if "deny" in fs:
            self.rules = {**self.rules, "deny": fs["deny"]}

    @property
    def policy(self) -> Policy:
        source = RuleSource("project", ".handrail/settings.json", 1, self.at(self.source_dir or PROJECT))
        policy = Policy.empty(self.at(self.cwd), self.at(self.home)).with_availability(ALL_MODES)
        policy = policy.with_directories(map(self.at, self.working_dirs)).with_kept(map(self.at, self.kept))
        policy = policy.with_own(map(self.at, self.own))
        for kind, texts in self.rules.items():
            policy = policy.adding(Behaviour(kind), texts, source)
        return policy.with_mode(self.mode)

    def case(self, tool: str, values: Mapping[str, Any], facts: Facts | None = None) -> Case:
        moved = {name: self.at(value) if isinstance(value, str) else value for name, value in values.items()}
        use, policy = ToolUse("1", tool, moved), self.policy
        return make_case(use, policy, LOOKUP, declared(use, policy.cwd, facts))

    def decide(self, tool: str, values: Mapping[str, Any], facts: Facts | None = None) -> Decision:
        return decide(self.case(tool, values, facts))

    def says(self, tool: str, values: Mapping[str, Any], facts: Facts | None = None) -> str:
        return outcome(self.decide(tool, values, facts))

    def bash(self, command: str) -> str:
        return self.says("Bash", {"command": command.replace(HOME, self.at(HOME))})

"""The programs that `peer_programs_bench` compares: how each is started, and how a model calls its tools."""

import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from itertools import count
from pathlib import Path

from handrail.conversation.blocks import AssistantBlock, Json, ServerBlock, ToolUse

ROOT = Path(__file__).resolve().parents[1]
NPM = ROOT / ".peers-npm"
PATH = "/usr/local/bin:/usr/bin:/bin"
RULES = ("sleep", "touch", "rg", "head")
"""Commands that are allowed without a question; the others only read."""
NUMBERS = count(1)


class Program(ABC):
    """A program that answers a prompt with the help of tools."""

    name: str
    wire = "/messages"
    """The end of the path of its requests, which says their format."""

    def is_installed(self) -> bool:
        """Whether it can be measured here."""
        return True

    @abstractmethod
    def version(self, home: Path) -> str: ...

    @abstractmethod
    def command(self, prompt: str) -> list[str]: ...

    def environment(self, home: Path, url: str) -> Mapping[str, str]:
        """All variables that it gets: a home of its own, the model on loopback, and no look for news."""
        return {"PATH": PATH, "HOME": str(home), "LANG": "C.UTF-8", "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k"}

    @abstractmethod
    def read(self, file: Path) -> AssistantBlock: ...

    @abstractmethod
    def write(self, file: Path, content: str) -> AssistantBlock: ...

    @abstractmethod
    def shell(self, command: str) -> AssistantBlock: ...

    def newest(self, ending: str) -> AssistantBlock:
        """Files with that ending, newest first."""
        return self.shell(f"rg --files --no-ignore -g '*{ending}' --sortr modified | head -100")

    def search(self, text: str) -> AssistantBlock:
        """Files that hold a text."""
        return self.shell(f"rg -lF --no-ignore '{text}'")


def call(name: str, values: Json) -> ToolUse:
    """A call whose id was never used before."""
    return ToolUse(f"call_{next(NUMBERS)}", name, values)


def printed_version(program: Path, home: Path) -> list[str]:
    """The words that a program prints as its version."""
    env = {"PATH": PATH, "HOME": str(home)}
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, env=env)
    return done.stdout.split()


class Handrail(Program):
    """Ourselves, with the rules that the others get."""

    name = "handrail"
    program = Path(sys.executable).with_name("handrail")

    def version(self, home: Path) -> str:
        return version("handrail")

    def command(self, prompt: str) -> list[str]:
        rules = [f"Bash({word} *)" for word in RULES]
        return [str(self.program), "-p", prompt, "--permission-mode", "acceptEdits", "--allowedTools", *rules]

    def environment(self, home: Path, url: str) -> Mapping[str, str]:
        return {**super().environment(home, url), "HANDRAIL_STATE_DIR": str(home / "state")}

    def read(self, file: Path) -> AssistantBlock:
        return call("Read", {"file_path": str(file)})

    def write(self, file: Path, content: str) -> AssistantBlock:
        return call("Write", {"file_path": str(file), "content": content})

    def shell(self, command: str) -> AssistantBlock:
        return call("Bash", {"command": command})

    def newest(self, ending: str) -> AssistantBlock:
        return call("Glob", {"pattern": f"**/*{ending}"})

    def search(self, text: str) -> AssistantBlock:
        return call("Grep", {"pattern": text})


class ClaudeCode(Handrail):
    """The program in the wheel of claude-agent-sdk. It takes the same flags; it offers no Glob and no Grep."""

    name = "Claude Code"
    program = Path()

    def is_installed(self) -> bool:
        found = find_spec("claude_agent_sdk")
        self.program = Path(found.origin or "").parent / "_bundled" / "claude" if found else Path()
        return self.program.is_file()

    def version(self, home: Path) -> str:
        return printed_version(self.program, home)[0]

    def environment(self, home: Path, url: str) -> Mapping[str, str]:
        quiet = ("DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC")
        return {**super().environment(home, url), **dict.fromkeys(quiet, "1")}

    def newest(self, ending: str) -> AssistantBlock:
        return Program.newest(self, ending)

    def search(self, text: str) -> AssistantBlock:
        return Program.search(self, text)


class BareClaudeCode(ClaudeCode):
    """The same without hooks, memory, skills and project instructions. It offers no Write, but Edit makes files."""

    name = "Claude Code --bare"

    def command(self, prompt: str) -> list[str]:
        program, *flags = super().command(prompt)
        return [program, "--bare", *flags]

    def write(self, file: Path, content: str) -> AssistantBlock:
        return call("Edit", {"file_path": str(file), "old_string": "", "new_string": content})


class Codex(Program):
    """The native program of the npm package. It reads and searches with commands; its sandbox is off."""

    name = "codex"
    wire = "/responses"

    def __init__(self) -> None:
        self._program = next(NPM.glob("node_modules/@openai/codex-*/vendor/*/bin/codex"), None)

    def is_installed(self) -> bool:
        return self._program is not None

    def version(self, home: Path) -> str:
        assert self._program is not None
        return printed_version(self._program, home)[-1]

    def command(self, prompt: str) -> list[str]:
        flags = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
        return [str(self._program), "exec", *flags, prompt]

    def environment(self, home: Path, url: str) -> Mapping[str, str]:
        folder = home / ".codex"
        folder.mkdir(exist_ok=True)
        (folder / "config.toml").write_text(CODEX_CONFIG.format(url=url), "utf-8")
        return {"PATH": PATH, "HOME": str(home), "LANG": "C.UTF-8", "MOCK_KEY": "k"}

    def read(self, file: Path) -> AssistantBlock:
        return self.shell(f"cat {file}")

    def write(self, file: Path, content: str) -> AssistantBlock:
        lines = "".join(f"+{line}\n" for line in content.splitlines())
        patch = f"*** Begin Patch\n*** Add File: {file}\n{lines}*** End Patch\n"
        number = next(NUMBERS)
        item = {"type": "custom_tool_call", "id": f"ctc_{number}", "call_id": f"call_{number}", "status": "completed"}
        return ServerBlock("custom_tool_call", {**item, "name": "apply_patch", "input": patch})

    def shell(self, command: str) -> AssistantBlock:
        return call("exec_command", {"cmd": command})


CODEX_CONFIG = """
model = "gpt-5.5"
model_provider = "mock"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
env_key = "MOCK_KEY"
wire_api = "responses"
"""


class PydanticAi(Program):
    """The agent of peer_agent.py."""

    name = "pydantic-ai"

    def is_installed(self) -> bool:
        return find_spec("pydantic_ai") is not None

    def version(self, home: Path) -> str:
        return version("pydantic-ai-slim")

    def command(self, prompt: str) -> list[str]:
        return [sys.executable, str(ROOT / "benchmarks" / "peer_agent.py"), prompt]

    def read(self, file: Path) -> AssistantBlock:
        return call("read", {"path": str(file)})

    def write(self, file: Path, content: str) -> AssistantBlock:
        return call("write", {"path": str(file), "content": content})

    def shell(self, command: str) -> AssistantBlock:
        return call("bash", {"command": command})

    def newest(self, ending: str) -> AssistantBlock:
        return call("glob", {"pattern": f"**/*{ending}"})

    def search(self, text: str) -> AssistantBlock:
        return call("grep", {"text": text})


PROGRAMS: tuple[Program, ...] = (Handrail(), ClaudeCode(), BareClaudeCode(), Codex(), PydanticAi())

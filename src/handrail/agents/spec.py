"""A kind of sub-agent as a Python program describes it."""

from typing import Any

from handrail.records import record


@record
class AgentSpec:
    """
    A kind of sub-agent for `Agent(agents=[...])`: when to use it, and its system prompt.

    `tools` are the names or rules of the tools it gets (None = all that sub-agents may use), `disallowed_tools` are
    taken away. `model` is that of the caller unless it names one; `mode` the widest permission mode it works in.
    `isolation` "worktree" gives it a git worktree of its own.
    """

    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] | list[str] | None = None
    disallowed_tools: tuple[str, ...] | list[str] = ()
    model: str = ""
    mode: str = ""
    max_turns: int | None = None
    effort: str = ""
    background: bool = False
    isolation: str = ""

    def as_json(self) -> dict[str, Any]:
        """The same in the form of agent definitions."""
        return {
            "description": self.description,
            "prompt": self.prompt,
            "tools": None if self.tools is None else list(self.tools),
            "disallowedTools": list(self.disallowed_tools),
            "model": self.model,
            "permissionMode": self.mode,
            "maxTurns": self.max_turns,
            "effort": self.effort,
            "background": self.background,
            "isolation": self.isolation,
        }

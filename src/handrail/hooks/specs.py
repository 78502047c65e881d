"""Hook specifications: when a hook runs, what it runs, and where it is configured."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias

from handrail.conversation.blocks import Json
from handrail.hooks.matcher import EVERYTHING, Matcher
from handrail.permissions.rules import NAMES, Rule
from handrail.records import record
from handrail.tools.context import AgentIdentity

Family: TypeAlias = Literal[".handrail", ".claude"]
Function: TypeAlias = Callable[[dict[str, Any]], "Json | Awaitable[Json | None] | None"]


def short_repr(value: object) -> str:
    """A value for a message, shortened."""
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


@record
class HookSource:
    """Where hooks are configured. Only hooks of a trusted source run; see `parse_hooks` for the others."""

    name: str
    """policy, flag, local, project, user, session, plugin:x, skill:x, agent:x or callback."""
    family: Family = ".handrail"
    file: str = ""
    folder: str = ""
    trust: Literal["trusted", "untrusted", "changed"] = "trusted"
    agent: str = ""
    """The id of the only agent that its hooks are for, with those that work for it; empty = for all."""
    variables: tuple[tuple[str, str], ...] = ()
    """What its commands are told besides."""

    def is_for(self, agent: AgentIdentity) -> bool:
        """Whether its hooks are for an agent."""
        return self.agent in ("", agent.id) or any(each.endswith(f" {self.agent}") for each in agent.path)

    @property
    def own(self) -> str:
        """The plugin or skill of its hooks, whose copies of another hook run separately; else empty."""
        return self.name if ":" in self.name else ""

    def __str__(self) -> str:
        return " ".join(filter(None, (NAMES.get(self.name, self.name), self.file)))


@record
class CommandHook:
    """A command line for a shell, or with `args` a program that is started without one."""

    command: str
    args: tuple[str, ...] | None = None
    shell: str = "sh"

    @property
    def argv(self) -> list[str]:
        return [self.shell, "-c", self.command] if self.args is None else [self.command, *self.args]

    def __str__(self) -> str:
        return self.command


@record
class HttpHook:
    """An endpoint that receives the input by POST. Only names in `variables` are replaced as `$NAME` in headers."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    variables: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return self.url


@record
class CallbackHook:
    """A Python function that takes the input and returns an output or None."""

    function: Function

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CallbackHook) and other.function is self.function

    def __hash__(self) -> int:
        return id(self.function)  # a callable object need not be hashable

    def __str__(self) -> str:
        return getattr(self.function, "__qualname__", None) or repr(self.function)


@record
class HookCallback:
    """
    A function to run, and when: `matcher` and `condition` as in settings (`condition` is their `if`).

    It takes the input as a dict and returns an output or None; it may be async. `timeout` is in seconds. With
    `blocks_on_failure` a function that raises, hangs or returns invalid output blocks.
    """

    function: Function
    matcher: str = ""
    condition: str = ""
    timeout: float | None = None
    blocks_on_failure: bool = False


@record
class BrokenHook:
    """The placeholder for a hook that cannot run."""

    problem: str


Handler: TypeAlias = CommandHook | HttpHook | CallbackHook | BrokenHook


@record
class Hook:
    """One hook: when it runs, what it runs, and what its failure means."""

    event: str
    handler: Handler
    source: HookSource
    at: str = ""
    matcher: Matcher = EVERYTHING
    condition: Rule | None = None
    timeout: float = 600.0
    status: str = ""
    once: bool = False
    blocks_on_failure: bool = False
    background: bool = False
    rewakes: bool = False

    @property
    def name(self) -> str:
        """The hook as messages name it."""
        return self.at if isinstance(self.handler, BrokenHook) else str(self.handler)

    @property
    def place(self) -> str:
        """Where it is configured."""
        return f"{self.source}: {self.at}"


@record
class HookProblem:
    """Something about hooks that the user should know."""

    source: HookSource
    at: str
    message: str
    kind: Literal["malformed", "unsupported", "untrusted"] = "malformed"

    def __str__(self) -> str:
        return f"{self.source}: {self.at}: {self.message}"


@record
class ParsedHooks:
    """The hooks of one section, in order, and its problems."""

    hooks: tuple[Hook, ...] = ()
    problems: tuple[HookProblem, ...] = ()

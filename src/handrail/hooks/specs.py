"""What a hook is: when it is asked, what is run, where it is written."""

from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

from handrail.conversation.blocks import Json
from handrail.hooks.matcher import EVERYTHING, Matcher
from handrail.permissions.rules import NAMES, Rule
from handrail.records import record

Family: TypeAlias = Literal[".handrail", ".claude"]
Function: TypeAlias = Callable[[Json], "Json | Awaitable[Json | None] | None"]


def short_repr(value: object) -> str:
    """A value of a settings file, in short."""
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


@record
class HookSource:
    """Where hooks are written. The hooks of a source that is not trusted are reported and never run."""

    name: str
    """policy, flag, local, project, user, session, plugin:x, skill:x or callback."""
    family: Family = ".handrail"
    file: str = ""
    folder: str = ""
    trusted: bool = True

    @property
    def own(self) -> str:
        """Copies of one hook run once; those of a plugin or skill stay separate from others."""
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
    """An endpoint that gets the input as a POST. `$NAME` in headers is replaced for the names of `variables` alone."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    variables: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return self.url


@record
class CallbackHook:
    """A Python function: takes the input, gives an output or None."""

    function: Function

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CallbackHook) and other.function is self.function

    def __hash__(self) -> int:
        return id(self.function)  # an object that can be called need not have a hash

    def __str__(self) -> str:
        return getattr(self.function, "__qualname__", None) or repr(self.function)


@record
class HookCallback:
    """
    A function to ask, and when: `matcher` and `condition` as in settings (`condition` is their `if`).

    It takes the input as a dict and returns an output or None; it may be async. `timeout` is in seconds. With
    `blocks_on_failure` a function that raises, hangs or gives nonsense blocks instead of leaving it to others.
    """

    function: Function
    matcher: str = ""
    condition: str = ""
    timeout: float | None = None
    blocks_on_failure: bool = False


@record
class BrokenHook:
    """What stands in the place of a hook that cannot run."""

    problem: str


Handler: TypeAlias = CommandHook | HttpHook | CallbackHook | BrokenHook


@record
class Hook:
    """One hook: when, what, and how strictly its failure is taken."""

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
        """Where it is written."""
        return f"{self.source}: {self.at}"


@record
class HookProblem:
    """Something about hooks that a person should know."""

    source: HookSource
    at: str
    message: str
    kind: Literal["malformed", "unsupported", "untrusted"] = "malformed"

    def __str__(self) -> str:
        return f"{self.source}: {self.at}: {self.message}"


@record
class ParsedHooks:
    """The hooks of one section, in their order, and what is wrong with it."""

    hooks: tuple[Hook, ...] = ()
    problems: tuple[HookProblem, ...] = ()

"""The shape of a command line after parsing: scripts of pipelines of commands."""

from handrail.named_tuples import NamedTuple
from handrail.shell.model import Redirection, Word


class Simple(NamedTuple):
    """`A=1 name word ... > file`."""

    assigns: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...]
    start: int
    end: int
    arrays: tuple[tuple[str, tuple[Word, ...]], ...] = ()  # `A=(1 2)`


class Compound(NamedTuple):
    """A subshell, group, loop, conditional, case or function, with the scripts inside it in written order."""

    kind: str
    scripts: tuple["Script", ...]
    start: int
    end: int
    words: tuple[Word, ...] = ()  # for: the values; case: the subject and the patterns
    name: str = ""  # for: the variable; function: its name
    redirections: tuple[Redirection, ...] = ()


Command = Simple | Compound


class CommandPipeline(NamedTuple):
    parts: tuple[Command, ...]
    negated: bool = False


class Script(NamedTuple):
    """Pipelines with the operator that follows each: `;` (also newline), `&`, `&&`, `||` or nothing."""

    items: tuple[tuple[CommandPipeline, str], ...]

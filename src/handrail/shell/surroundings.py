"""What surrounds a command: the wrappers around it, its input, the files that the shell opens, variables set for it."""

from handrail.errors import UnclearError
from handrail.lazy import lazy_pattern
from handrail.named_tuples import NamedTuple
from handrail.shell.listing import PLACE
from handrail.shell.model import FREE_TARGETS, Does, Effect, Segment, Word
from handrail.shell.scope import harmless_setting

DESCRIPTOR = lazy_pattern(r"(?:[0-9]+|-)\Z")  # a digit of another script names a file
SOCKETS = ("/dev/tcp/", "/dev/udp/")
FED_SHELLS = frozenset("sh bash dash rbash ash zsh ksh mksh".split())
# What other shells read differently: $'a\'' ends elsewhere, `a &>f b` is two commands, `[[ a > b ]]` writes b, and in
# `[^a]` the first character is one like others.
ONLY_BASH = lazy_pattern(r"\$['\"]|&>|\[[\[^]|\|&|[<>]\(|<<<|\{[^}]*(?:,|\.\.)|\bfunction\b")
# In some, these evaluate what a command has printed.
NUMBER_TEST = lazy_pattern(r"\s-(?:eq|ne|lt|le|gt|ge)\s")
INSERTS = lazy_pattern(r"\$\((?!\()|`")


class Position(NamedTuple):
    """Where a command stands: the wrappers around it, and what feeds its standard input."""

    path: tuple[str, ...] = ()
    fed_by: Segment | None = None
    arguments: tuple[Word, ...] = ()  # see Effect

    def inside(self, carrier: str) -> "Position":
        return self._replace(path=(*self.path, carrier))

    def with_arguments(self, arguments: tuple[Word, ...]) -> "Position":
        """The place inside a command with these arguments; one that stands for paths of the outer command is those."""
        found = [argument for argument in arguments if str(argument) != PLACE]
        return self._replace(arguments=(*found, *(self.arguments if len(found) < len(arguments) else ())))

    @property
    def listed(self) -> bool:
        """True if names of files at or under what was read come in, and nothing else."""
        return self.fed_by is not None and self.fed_by.lists_paths

    @property
    def names(self) -> tuple[Word, ...]:
        return self.fed_by.whole_names if self.fed_by is not None else ()


def fed_program(segment: Segment, place: Position) -> str | None:
    """The text that a shell reads from standard input as its program, where a command prints it (`echo ls | sh`)."""
    source = place.fed_by
    if segment.name not in FED_SHELLS or source is None or source.entry not in ("echo", "printf"):
        return None
    texts = [word.literal for word in source.argv[1:]]
    known = [text for text in texts if text is not None and not text.startswith("-")]
    options = all((word.literal or "").startswith("-") for word in segment.argv[1:])
    return " ".join(known) if options and known and None not in texts else None


def portable(text: str, segment: Segment) -> None:
    """Raises UnclearError for a text that `sh` may read otherwise than bash."""
    found = ONLY_BASH.search(text) or (NUMBER_TEST.search(text) if INSERTS.search(text) else None)
    if found:
        raise UnclearError(f"{found.group()!r} for a shell that may not be bash", segment.start, segment.end)


def redirect(operator: str, target: Word) -> list[Effect]:
    """The file a redirection reads or writes."""
    text = target.literal
    if operator in (">&", "<&") and text is not None and DESCRIPTOR.match(text):
        return []
    if text is not None and text.startswith(SOCKETS):
        return [Effect(Does.NETWORK, target, "opens a connection")]
    if not target.single:
        opened = Does.READS if operator == "<" else Does.WRITES
        unknown = Effect(Does.UNKNOWN, target, "the target of the redirection is not one known word")
        return [unknown, Effect(opened, target, "opened by redirection")]
    if operator == "<":
        return [Effect(Does.READS, target, "read by redirection")]
    if text in FREE_TARGETS and operator in (">", ">>", "&>", "&>>", ">|", ">&"):
        return []
    return [Effect(Does.WRITES, target, "written by redirection")]


def set_for_command(name: str, word: Word, command: str | None) -> Effect | None:
    """`NAME=value command`: only names and values that cannot load, run or redirect anything."""
    if (name == "IFS" and command == "read") or harmless_setting(name, word):  # IFS: how this one line is cut
        return None
    return Effect(Does.STATE, word, f"runs the command with {name} set, which may change what it does")

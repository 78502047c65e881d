"""The format of a table entry. See `handrail.shell.tables` for how to write one."""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any

from handrail.named_tuples import NamedTuple
from handrail.shell.model import Does, Requirement


class Role(Enum):
    """What a program does with a word. Only the first group leaves a command read-only."""

    TEXT = "text"  # a pattern, number, format, revision: no file is opened because of it
    READ = "read"  # a file or folder whose contents are read
    LOOK = "look"  # a file or folder whose name, size, kind or counts are shown, never its contents
    COMMAND = "command"  # this word and all after it are another command
    FED_COMMAND = "fed command"  # the same, with words from standard input added (xargs)
    SHELL = "shell"  # a text for a shell; the words after it are its parameters
    EVAL = "eval"  # this word and all after it, joined, are a text for this shell

    WRITE = "write"  # a file that is written or created
    REMOVE = "remove"  # a file or folder that is removed with all that is in it
    NAMES = "names"  # a file that names more files to read: what is read cannot be told
    PROGRAM = "program"  # a program that is started
    SCRIPT = "script"  # a file with a program in it that is run
    NETWORK = "network"  # a host or address
    STATE = "state"  # changes something that outlives the command
    SECRET = "secret"  # noqa: S105 - shows something that may be secret


TEXT, READ, LOOK = Role.TEXT, Role.READ, Role.LOOK
COMMAND, FED_COMMAND, SHELL, EVAL = Role.COMMAND, Role.FED_COMMAND, Role.SHELL, Role.EVAL
CARRIERS = frozenset((COMMAND, FED_COMMAND, SHELL, EVAL))
WRITE, REMOVE, NAMES, PROGRAM = Role.WRITE, Role.REMOVE, Role.NAMES, Role.PROGRAM
SCRIPT, NETWORK, STATE, SECRET = Role.SCRIPT, Role.NETWORK, Role.STATE, Role.SECRET

ROLE_EFFECT: Mapping[Role, tuple[Does, str]] = {
    Role.READ: (Does.READS, "reads this"),
    Role.LOOK: (Does.LOOKS, "looks at this"),
    Role.WRITE: (Does.WRITES, "writes this file"),
    Role.REMOVE: (Does.WRITES, "removes this"),
    Role.NAMES: (Does.UNKNOWN, "reads files named in this one"),
    Role.PROGRAM: (Does.STARTS, "starts this program"),
    Role.SCRIPT: (Does.STARTS, "runs the program in this file"),
    Role.NETWORK: (Does.NETWORK, "reaches the network"),
    Role.STATE: (Does.STATE, "changes something that stays"),
    Role.SECRET: (Does.SECRET, "may show a secret"),
}


class Grammar(NamedTuple):
    """A word that is a program in a small language; `name` is the module and function of its checker in `grammars`."""

    name: str

    @property
    def language(self) -> str:
        return self.name.rpartition(".")[2].removesuffix("_text")


class Unless(NamedTuple):
    """A leading operand that is not there when one of these options is given (grep's pattern with -e)."""

    role: "Role | Grammar"
    options: str


Use = Role | Grammar


NOTHING: Mapping[Any, Any] = MappingProxyType({})


class Command(NamedTuple):
    """
    One program, or one sub-command of it.

    Everything not listed is refused: an option, an abbreviation of one, an operand too many, a sub-command.
    Option lists are blank-separated spellings of short (`-n`) and long (`--lines`) options.
    """

    flags: str = ""  # options without a value and without an effect
    values: Mapping[str, Use] = NOTHING  # options with a value: -n5, -n 5, --lines=5, --lines 5
    attached: Mapping[str, Use] = NOTHING  # --format=VALUE; the bare option is refused
    optional: Mapping[str, Use] = NOTHING  # value only if attached: --color[=WHEN], -U[N]
    never: Mapping[str, str] = NOTHING  # never read-only with these: option -> what it does
    only_with: str = ""  # read-only only if one of these is given
    number: bool = False  # -5 is an option
    operands: tuple[Use | Unless, ...] = ()  # roles of the first operands
    rest: Use | None = None  # role of all further operands; None refuses them
    default: str = ""  # what is read when there is no operand for `rest`: "." or ""
    options_first: bool = False  # the first operand ends the options (POSIX, wrappers)
    plain: bool = False  # no options at all: every word is an operand (echo, test)
    # No option of this program, listed or not, does more than change what is read and printed. Only then may a
    # word that is not known until run time ("$x", *.c, xargs input) stand where an option could.
    harmless_options: bool = False
    lists_paths: bool = False  # prints the paths of files it found at or under its operands, nothing else
    not_paths_with: str = ""  # words with which it prints other things too (find -printf)
    ends_names_with_nul: str = ""  # options with which no name can be taken for two (find -print0, git ls-files -z)
    passes_with: str = ""  # with no files and only these options it prints lines of its input unchanged (grep, head)
    reads_nul_names: str = ""  # for FED_COMMAND: options with which only NUL ends a word (xargs -0)
    cuts_names: str = ""  # for FED_COMMAND: options with which a name may become several words (xargs -d)
    recurses: str = ""  # options with which all files below its folders are read (grep -r); "*" is always
    follows: str = ""  # options with which it then follows the links in them; "*" is always
    moves_files: str = ""  # options with which its sources are gone afterwards (zip -m); "*" is always
    clears: str = ""  # options with which it empties the folder it writes to (rsync --delete)
    keeps: str = ""  # options with which REMOVE only looks (git rm --cached)
    runs_rest: str = ""  # options behind which the words up to `;` are a command for what it finds (fd -x)
    hidden_with: str = ""  # options with which it reads what begins with a dot; empty is always
    expression: str = ""  # the checker that reads all operands (find, test)
    subcommands: Mapping[str, "Command"] = NOTHING
    moves: str = ""  # options whose value is the folder the command works in (git -C, env -C)
    assigns: bool = False  # NAME=VALUE operands before the command are set for it (env, sudo)
    replaces: str = ""  # for FED_COMMAND: the option whose value stands for the added words (xargs -I)
    replaces_not_with: str = ""  # options of which the last given wins over `replaces`: refused together (xargs -n)
    effect: Mapping[Role, str] = NOTHING  # what it always does: {STATE: "ends a process"}
    alone: Mapping[Role, str] = NOTHING  # what it does without operands: env shows variables
    requires: tuple[Requirement, ...] = ()


def always(role: Role, why: str) -> Command:
    """A program whose words are not looked at: it always does this."""
    return Command(effect={role: why}, plain=True, rest=TEXT)


def by_name(entries: Mapping[str, Command]) -> dict[str, Command]:
    """The entries, each under every name that its key holds."""
    return {name: entry for names, entry in entries.items() for name in names.split()}


def version(options: str, subcommands: Mapping[str, Command] = NOTHING) -> Command:
    """A program that prints its version and stops with one of these options; else only its sub-commands are known."""
    return Command(flags=options, only_with=options, subcommands=by_name(subcommands))


class Option(NamedTuple):
    name: str
    use: Use | None = None
    optional: bool = False
    attached: bool = False
    never: str = ""


class OptionIndex:
    """An entry's options by spelling, built once."""

    def __init__(self, entry: Command) -> None:
        self.by_name: dict[str, Option] = {}
        known = [(entry.flags, Option(""))]
        known += [(names, Option("", use)) for names, use in entry.values.items()]
        known += [(names, Option("", use, optional=True)) for names, use in entry.optional.items()]
        known += [(names, Option("", use, attached=True)) for names, use in entry.attached.items()]
        known += [(names, Option("", never=why)) for names, why in entry.never.items()]
        for names, option in known:
            for name in names.split():
                self.add(option._replace(name=name))
        # A file name taken for one of these options would make the program read a file of the name's choice.
        self.can_name_files = any(option.use in (Role.READ, Role.NAMES) for option in self.by_name.values())

    def add(self, option: Option) -> None:
        if option.name in self.by_name or not option.name.startswith("-") or option.name in ("-", "--"):
            raise ValueError(f"option {option.name!r} is listed twice or is no option")
        if not option.name.startswith("--") and len(option.name) != 2:
            raise ValueError(f"short option {option.name!r} must be one letter")
        self.by_name[option.name] = option

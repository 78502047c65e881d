"""Builtins of the shell that have to do with its own state, and the tests (bash 5.2, SHELL BUILTIN COMMANDS)."""

from handrail.shell.model import Requirement
from handrail.shell.tables.format import LOOK, NAMES, SCRIPT, SECRET, STATE, TEXT, Command, Role

CDPATH = Requirement("no-cdpath", "CDPATH is not set in the environment")


def changes(name: str, why: str, role: Role = STATE) -> Command:
    """A builtin that is never read-only, whatever it is given."""
    return Command(source=f"bash 5.2, {name}", plain=True, rest=TEXT, effect={role: why})


def number(name: str) -> Command:
    """A builtin that takes a number, which is read as one and not evaluated."""
    return Command(source=f"bash 5.2, {name}", plain=True, rest=TEXT)


SOURCE = Command(
    source="bash 5.2, source", operands=(SCRIPT,), rest=TEXT, alone={SCRIPT: "runs a file"}, options_first=True
)
DECLARE = Command(
    source="bash 5.2, declare", plain=True, expression="builtins.settings", alone={SECRET: "shows all variables"}
)

COMMANDS: dict[str, Command] = {
    # No options: -P changes what `..` means, -L is the default, -e and -@ are rare.
    "cd": Command(
        source="bash 5.2, cd", operands=(LOOK,), alone={NAMES: "goes to the home folder"}, requires=(CDPATH,)
    ),
    # Operands must be plain names: a subscript would be evaluated.
    "read": Command(source="bash 5.2, read", flags="-r -s", values={"-d -n -N -t": TEXT}, expression="builtins.names"),
    "test": Command(source="bash 5.2, test", plain=True, expression="builtins.test"),
    "[": Command(source="bash 5.2, test", plain=True, expression="builtins.test"),
    "[[": Command(source="bash 5.2, [[ ]]", plain=True, expression="builtins.test"),
    "source": SOURCE,
    ".": SOURCE,
    "alias": Command(source="bash 5.2, alias", plain=True, expression="builtins.alias"),
    "unalias": changes("unalias", "removes an alias"),
    **{name: number(name) for name in ("exit", "return", "break", "continue")},
    "shift": changes("shift", "moves the parameters of the shell"),
    "set": Command(source="bash 5.2, set", plain=True, expression="builtins.set_options"),
    "shopt": Command(source="bash 5.2, shopt", plain=True, expression="builtins.shopt"),
    "export": DECLARE,
    "declare": DECLARE,
    "typeset": DECLARE,
    "local": DECLARE,
    "readonly": DECLARE,
    "unset": changes("unset", "removes a variable, and evaluates a subscript in its name"),
    "let": changes("let", "evaluates arithmetic, which can run commands", NAMES),
    "hash": changes("hash", "changes where programs are found"),
    "wait": Command(source="bash 5.2, wait", flags="-f -n", rest=TEXT),
    "disown": changes("disown", "lets a job outlive the shell"),
    "bg": changes("bg", "lets a job go on"),
    "fg": changes("fg", "lets a job go on"),
    "suspend": changes("suspend", "stops the shell"),
    "logout": number("logout"),
    "umask": Command(source="bash 5.2, umask", flags="-p -S"),
    "ulimit": Command(source="bash 5.2, ulimit", flags="-a -S -H -c -d -f -l -m -n -s -t -u -v"),
    "times": Command(source="bash 5.2, times"),
    "dirs": Command(source="bash 5.2, dirs", flags="-l -p -v"),
    "pushd": changes("pushd", "changes the folder, which is not followed", NAMES),
    "popd": changes("popd", "changes the folder, which is not followed", NAMES),
    "getopts": changes("getopts", "sets variables"),
    "history": changes("history", "shows or changes what was typed", SECRET),
    "fc": changes("fc", "runs commands again", NAMES),
    "enable": changes("enable", "switches builtins on and off, or loads them from a file", NAMES),
    "bind": changes("bind", "changes what keys do"),
    "complete": changes("complete", "sets what completes a word"),
    "compgen": changes("compgen", "can run a command or a function", NAMES),
    "compopt": changes("compopt", "sets what completes a word"),
    "caller": number("caller"),
}

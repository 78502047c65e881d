"""Builtins of the shell that have to do with its own state, and the tests (bash 5.2, SHELL BUILTIN COMMANDS)."""

from handrail.shell.model import Requirement
from handrail.shell.tables.format import LOOK, NAMES, SCRIPT, SECRET, STATE, TEXT, Command, always

SOURCES = {"bash 5.2, SHELL BUILTIN COMMANDS": "*"}

CDPATH = Requirement("no-cdpath", "CDPATH is not set in the environment")


COMMANDS: dict[str, Command] = {
    # No options: -P changes what `..` means, -L is the default, -e and -@ are rare.
    "cd": Command(operands=(LOOK,), alone={NAMES: "goes to the home folder"}, requires=(CDPATH,)),
    # Operands must be plain names: a subscript would be evaluated.
    "read": Command(flags="-r -s", values={"-d -n -N -t": TEXT}, expression="builtins.names"),
    "test [ [[": Command(plain=True, expression="builtins.test"),
    "source .": Command(operands=(SCRIPT,), rest=TEXT, alone={SCRIPT: "runs a file"}, options_first=True),
    "alias": Command(plain=True, expression="builtins.alias"),
    "unalias": always(STATE, "removes an alias"),
    # They take a number, which is read as one and not evaluated.
    "exit return break continue logout caller": Command(plain=True, rest=TEXT),
    "shift": always(STATE, "moves the parameters of the shell"),
    "set": Command(plain=True, expression="builtins.set_options"),
    "shopt": Command(plain=True, expression="builtins.shopt"),
    "export declare typeset local readonly": Command(
        plain=True, expression="builtins.settings", alone={SECRET: "shows all variables"}
    ),
    "unset": always(STATE, "removes a variable, and evaluates a subscript in its name"),
    "let": always(NAMES, "evaluates arithmetic, which can run commands"),
    "hash": always(STATE, "changes where programs are found"),
    "wait": Command(flags="-f -n", rest=TEXT),
    "disown": always(STATE, "lets a job outlive the shell"),
    "bg fg": always(STATE, "lets a job go on"),
    "suspend": always(STATE, "stops the shell"),
    "umask": Command(flags="-p -S"),
    "ulimit": Command(flags="-a -S -H -c -d -f -l -m -n -s -t -u -v"),
    "times": Command(),
    "dirs": Command(flags="-l -p -v"),
    "pushd popd": always(NAMES, "changes the folder, which is not followed"),
    "getopts": always(STATE, "sets variables"),
    "history": always(SECRET, "shows or changes what was typed"),
    "fc": always(NAMES, "runs commands again"),
    "enable": always(NAMES, "switches builtins on and off, or loads them from a file"),
    "bind": always(STATE, "changes what keys do"),
    "complete compopt": always(STATE, "sets what completes a word"),
    "compgen": always(NAMES, "can run a command or a function"),
}

"""Programs that run another command. The inner command is judged by its own entry, at any depth."""

from handrail.shell.tables.format import (
    COMMAND,
    EVAL,
    FED_COMMAND,
    NAMES,
    READ,
    SECRET,
    SHELL,
    STATE,
    TEXT,
    Command,
    Unless,
)

SH = Command(
    # Without -c the program comes from a file or standard input. -l and -i read start-up files.
    source="bash 5.2, bash(1); dash(1)",
    flags="-c -e -u",
    only_with="-c",
    operands=(SHELL,),
    options_first=True,
)

COMMANDS: dict[str, Command] = {
    "sh": SH,
    "bash": SH,
    "dash": SH,
    "eval": Command(
        source="bash 5.2, eval",
        plain=True,
        rest=EVAL,
        effect={NAMES: "eval may change anything in this shell"},
    ),
    "timeout": Command(
        source="GNU coreutils 9.4, timeout(1)",
        flags="--foreground --preserve-status -v --verbose",
        values={"-k --kill-after -s --signal": TEXT},
        operands=(TEXT, COMMAND),
        options_first=True,
    ),
    "nice": Command(
        source="GNU coreutils 9.4, nice(1)",
        values={"-n --adjustment": TEXT},
        number=True,
        operands=(COMMAND,),
        options_first=True,
    ),
    "nohup": Command(
        # Writes nohup.out when its output is a terminal.
        source="GNU coreutils 9.4, nohup(1)",
        operands=(COMMAND,),
        options_first=True,
        effect={STATE: "may write nohup.out, and the command outlives its shell"},
    ),
    "command": Command(
        source="bash 5.2, command",
        flags="-v -V -p",
        operands=(Unless(COMMAND, "-v -V"),),
        rest=TEXT,
        options_first=True,
    ),
    "env": Command(
        source="GNU coreutils 9.4, env(1)",
        flags="-i --ignore-environment -0 --null",
        values={"-u --unset": STATE, "-C --chdir": READ, "-S --split-string": NAMES},
        operands=(COMMAND,),
        options_first=True,
        assigns=True,
        moves="-C --chdir",
        alone={SECRET: "shows all variables of the environment"},
    ),
    "xargs": Command(
        source="GNU findutils 4.9, xargs(1)",
        flags="-0 --null -r --no-run-if-empty -t --verbose -x --exit",
        values={
            "-d --delimiter -E -L --max-lines -n --max-args -P --max-procs -s --max-chars -I": TEXT,
            "-a --arg-file": NAMES,
        },
        never={"-o --open-tty -p --interactive": "reads from the terminal"},
        operands=(FED_COMMAND,),
        replaces="-I",
        reads_nul_names="-0 --null",
        options_first=True,
        alone={NAMES: "makes arguments for echo of whatever comes in"},
    ),
}

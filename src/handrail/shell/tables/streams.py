"""sed and awk: the program is a word in a language of its own, read by a closed grammar."""

from handrail.shell.tables.format import PROGRAM, READ, SCRIPT, TEXT, Command, Grammar, Unless

AWK = Command(
    # Long options are taken with `=` only: other awks ignore the ones they do not know, and the next word would be the
    # program. gawk's -o, -p, -d write files; -D starts a debugger; -e and --source add parts of a program.
    source="gawk 5.2, gawk(1); mawk 1.3.4, mawk(1); awk(1p)",
    flags="--version",
    values={"-F -v": TEXT, "-f -E": SCRIPT, "-i -l": PROGRAM},
    attached={"--field-separator --assign": TEXT, "--file --exec": SCRIPT, "--include --load": PROGRAM},
    operands=(Unless(Grammar("awk.awk"), "--version"),),
    rest=READ,
    options_first=True,
)

COMMANDS: dict[str, Command] = {
    "sed": Command(source="GNU sed 4.9, sed(1); FreeBSD and macOS sed(1)", plain=True, expression="sed.sed_words"),
    "awk": AWK,
    "gawk": AWK,
    "mawk": AWK,
    "nawk": AWK,
    "original-awk": AWK,
}

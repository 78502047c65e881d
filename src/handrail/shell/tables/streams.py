"""sed and awk: the program is a word in a language of its own, read by a closed grammar."""

from handrail.shell.tables.format import PROGRAM, READ, SCRIPT, TEXT, Command, Grammar, Unless

SOURCES = {"GNU sed 4.9, FreeBSD and macOS sed": "sed", "gawk 5.2, mawk 1.3.4 and awk(1p)": "*"}


COMMANDS: dict[str, Command] = {
    "sed": Command(plain=True, expression="sed.sed_words"),
    "awk gawk mawk nawk original-awk": Command(
        # Long options are taken with `=` only: other awks ignore the ones they do not know, and the next word would be
        # the program. gawk's -o, -p, -d write files; -D starts a debugger; -e and --source add parts of a program.
        flags="--version",
        values={"-F -v": TEXT, "-f -E": SCRIPT, "-i -l": PROGRAM},
        attached={"--field-separator --assign": TEXT, "--file --exec": SCRIPT, "--include --load": PROGRAM},
        operands=(Unless(Grammar("awk.awk"), "--version"),),
        rest=READ,
        options_first=True,
    ),
}

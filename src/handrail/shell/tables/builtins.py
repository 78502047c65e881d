"""Builtins of the shell that have to do with its own state, and the tests."""

from handrail.shell.model import Requirement
from handrail.shell.tables.format import LOOK, NAMES, TEXT, Command

CDPATH = Requirement("no-cdpath", "CDPATH is not set in the environment")

COMMANDS: dict[str, Command] = {
    # No options: -P changes what `..` means, -L is the default, -e and -@ are rare.
    "cd": Command(
        source="bash 5.2, cd", operands=(LOOK,), alone={NAMES: "goes to the home folder"}, requires=(CDPATH,)
    ),
    # Operands must be plain names: a subscript would be evaluated.
    "read": Command(source="bash 5.2, read", flags="-r -s", values={"-d -n -N -t": TEXT}, expression="names"),
    "test": Command(source="bash 5.2, test", plain=True, expression="test"),
    "[": Command(source="bash 5.2, test", plain=True, expression="test"),
    "[[": Command(source="bash 5.2, [[ ]]", plain=True, expression="test"),
}

"""
Tells the searches of a command line which files to leave out: by a function of bash in its environment.

The options come last, since the last of several that contradict each other wins.
"""

from collections.abc import Iterable

GREP = "BASH_FUNC_grep%%"
FUNCTION = '() {{ command grep "$@" {options}\n}}'


def search_functions(names: Iterable[str]) -> dict[str, str]:
    """The variables with which grep leaves out files of these names; one with a slash behind it is a folder."""
    options = [f"--exclude-dir={name[:-1]}" if name.endswith("/") else f"--exclude={name}" for name in names]
    return {GREP: FUNCTION.format(options=" ".join(dict.fromkeys(options)))} if options else {}


def left_out_notice(paths: Iterable[str]) -> str:
    """What the model and the user are told of files that were left out."""
    names = ", ".join(dict.fromkeys(paths))
    return f"left out, since they may hold secrets: {names}. Name such a file to ask for it" if names else ""

"""
Tells the searches of a command line which files to leave out: by functions of bash in its environment.

The options come last, since the last of several that contradict each other wins.
"""

from collections.abc import Iterable

FUNCTION = '() {{ command {program} "$@" {options}\n}}'


def search_functions(names: Iterable[str]) -> dict[str, str]:
    """The variables with which grep and rg leave out files of these names; one with a slash behind it is a folder."""
    given = tuple(dict.fromkeys(names))
    if not given:
        return {}
    options = {
        "grep": [f"--exclude-dir={name[:-1]}" if name.endswith("/") else f"--exclude={name}" for name in given],
        "rg": [f"'--iglob=!**/{name}**'" if name.endswith("/") else f"'--iglob=!**/{name}'" for name in given],
    }
    return {
        f"BASH_FUNC_{program}%%": FUNCTION.format(program=program, options=" ".join(words))
        for program, words in options.items()
    }


def left_out_notice(paths: Iterable[str]) -> str:
    """What the model and the user are told of files that were left out."""
    names = ", ".join(dict.fromkeys(paths))
    return f"left out, since they may hold secrets: {names}. Name such a file to ask for it" if names else ""

"""
Tells the searches of a command line which files to leave out: by functions of bash in its environment.

The options come last, since the last of several that contradict each other wins.
"""

from collections.abc import Callable, Iterable, Mapping

FUNCTION = '() {{ command {program} "$@" {options}\n}}'


def grep_option(name: str) -> str:
    pattern = "".join(f"[{char.lower()}{char.upper()}]" if char.isalpha() else char for char in name)
    return f"--exclude-dir={pattern[:-1]}" if name.endswith("/") else f"--exclude={pattern}"


def rg_option(name: str) -> str:
    return f"--iglob=!**/{name}**" if name.endswith("/") else f"--iglob=!**/{name}"


SEARCHES: Mapping[str, Callable[[str], str]] = {"grep": grep_option, "rg": rg_option}


def search_functions(names: Iterable[str]) -> dict[str, str]:
    """The variables with which searches leave out files of these names; one with a slash behind it is a folder."""
    given = tuple(dict.fromkeys(names))
    return {
        f"BASH_FUNC_{program}%%": FUNCTION.format(
            program=program, options=" ".join(f"'{option(name)}'" for name in given)
        )
        for program, option in SEARCHES.items()
        if given
    }


def left_out_notice(paths: Iterable[str]) -> str:
    """What the model and the user are told of files that were left out."""
    names = ", ".join(dict.fromkeys(paths))
    return f"left out, since they may hold secrets: {names}. Name such a file to ask for it" if names else ""

"""
The environment variables of commands.

A command that runs because it only reads gets a clean environment: without variables that could make a harmless program
do something else (BASH_ENV, LD_PRELOAD, GIT_*, CDPATH, RIPGREP_CONFIG_PATH, ...), and with settings that keep git from
running programs of a repository's configuration. Every other command was approved and gets the user's environment
without the model's API keys.
"""

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from handrail.files.search_path import find_program, lies_in, path_outside
from handrail.lazy import lazy_pattern
from handrail.shell.clean_environment import SET_FOR_ALL, SET_FOR_READING
from handrail.shell.model import Requirement
from handrail.shell.scope import PLAIN_LOCALE

KEPT = frozenset("HOME USER LOGNAME SHELL PATH LANGUAGE TZ TMPDIR XDG_CONFIG_HOME".split())  # noqa: SIM905
KEYS = frozenset(
    "ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN CLAUDE_CODE_OAUTH_TOKEN OPENAI_API_KEY".split()  # noqa: SIM905
)
"""API keys of handrail itself. A hook can pass one to commands through the environment file."""
EXPORT = lazy_pattern(r"\s*export\s+(?=[A-Za-z_])")
VARIABLE = lazy_pattern(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
MAX_FILE_BYTES = 100_000


def clean_environment(
    env: Mapping[str, str], needs: Iterable[Requirement], folders: Sequence[str] = ()
) -> dict[str, str]:
    """
    The environment of a command that only reads. No program of these folders is found in it.

    The locale is kept if the shell reads a line in it as it was analysed.
    """
    kept = {
        name: value
        for name, value in env.items()
        if name in KEPT or ((name == "LANG" or name.startswith("LC_")) and PLAIN_LOCALE.match(value))
    }
    kept["PATH"] = path_outside(env.get("PATH", ""), folders)
    return {**kept, **SET_FOR_READING, **git_settings(needs)}


def user_environment(env: Mapping[str, str], programs: Sequence[str] = ()) -> dict[str, str]:
    """The environment of a command that was approved. Folders of `programs` come last, so that they replace none."""
    kept = {name: value for name, value in env.items() if name not in KEYS}
    if programs:
        kept["PATH"] = os.pathsep.join((kept.get("PATH") or os.defpath, *programs))
    return {**kept, **SET_FOR_ALL}


def git_settings(needs: Iterable[Requirement]) -> dict[str, str]:
    """The `-c name=value` switches of an analysis, as variables for every git that the command starts."""
    pairs = [pair for need in needs for pair in need.settings]
    if not pairs:
        return {}
    found = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for at, pair in enumerate(pairs):
        name, _, value = pair.partition("=")
        found |= {f"GIT_CONFIG_KEY_{at}": name, f"GIT_CONFIG_VALUE_{at}": value}
    return found


def with_hook_exports(env: Mapping[str, str]) -> dict[str, str]:
    """The environment plus the `export NAME=VALUE` lines of the file that hooks write. Nothing is executed."""
    found = dict(env)
    for line in lines_of(env.get("CLAUDE_ENV_FILE", "")):
        exported = EXPORT.match(line)
        for word in words_of(line[exported.end() :]) if exported else ():
            variable, equals, value = word.partition("=")
            if equals and variable.isidentifier():
                found[variable] = VARIABLE.sub(lambda used: found.get(used[1] or used[2], ""), value)
    return found


def lines_of(name: str) -> list[str]:
    if not name or not Path(name).is_file():  # opening a pipe would block
        return []  # no hook has written it yet
    try:
        with Path(name).open("rb") as file:
            return file.read(MAX_FILE_BYTES).decode("utf-8", "surrogateescape").splitlines()
    except FileNotFoundError:
        return []


def words_of(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return []  # an unclosed quote: not a plain export


def project_folders(working_dirs: Iterable[str], home: str) -> tuple[str, ...]:
    """The working folders whose programs are not the user's own. In the home folder they are."""
    return tuple(folder for folder in working_dirs if not f"{home}/".startswith(f"{folder.rstrip('/')}/"))


def own_program(names: Iterable[str], path: str, folders: Sequence[str]) -> str:
    """The first of these programs that the search path finds in one of the folders; empty if none."""
    for name in names:
        found = find_program(name, path)
        if found and lies_in(found, folders):
            return found
    return ""

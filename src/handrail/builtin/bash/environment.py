"""
The environment variables of commands.

A command that runs because it only reads gets a clean environment: without variables that could make a harmless program
do something else (BASH_ENV, LD_PRELOAD, GIT_*, CDPATH, RIPGREP_CONFIG_PATH, ...), and with settings that keep git from
running programs of a repository's configuration. Every other command was approved and gets the user's environment
without the model's API keys.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from handrail.shell.clean_environment import SET_FOR_ALL, SET_FOR_READING
from handrail.shell.model import Requirement
from handrail.shell.scope import PLAIN_LOCALE

KEPT = frozenset("HOME USER LOGNAME SHELL PATH LANGUAGE TZ TMPDIR XDG_CONFIG_HOME".split())  # noqa: SIM905
KEYS = frozenset(
    "ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN CLAUDE_CODE_OAUTH_TOKEN OPENAI_API_KEY".split()  # noqa: SIM905
)
"""API keys of handrail itself. A hook can pass one to commands through the environment file."""
EXPORT = re.compile(r"\s*export\s+(?=[A-Za-z_])")
VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
MAX_FILE_BYTES = 100_000


def clean_environment(env: Mapping[str, str], needs: Iterable[Requirement]) -> dict[str, str]:
    """The environment of a command that only reads."""
    kept = {name: value for name, value in env.items() if name in KEPT or is_plain_locale(name, value)}
    safe = ":".join(entry for entry in env.get("PATH", "").split(":") if entry.startswith("/"))
    kept["PATH"] = safe or "/usr/local/bin:/usr/bin:/bin"
    return {**kept, **SET_FOR_READING, **git_settings(needs)}


def is_plain_locale(name: str, value: str) -> bool:
    """Whether a variable sets the locale to one in which the shell reads a line as it was analysed."""
    return (name == "LANG" or name.startswith("LC_")) and PLAIN_LOCALE.match(value) is not None


def user_environment(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command that was approved."""
    return {**{name: value for name, value in env.items() if name not in KEYS}, **SET_FOR_ALL}


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

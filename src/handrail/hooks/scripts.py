"""The script that a command hook starts, looked for before the hook is needed: a missing guard guards nothing."""

import os
import re
import shlex
import shutil
from collections.abc import Mapping

from handrail.hooks.specs import CommandHook, HookSource
from handrail.lazy import lazy_pattern

VARIABLE = lazy_pattern(r"\$(?:\{(\w+)\}|(\w+))")
SHELL_ONLY = lazy_pattern(r"""[;&|<>()`*?\[\]\n'\\]""")
"""What only a shell can interpret. Lines with it are not looked into."""
CUT = lazy_pattern(r"[\s;&|()<>=`'\"]+")
INTERPRETERS = lazy_pattern(r"(?:env|sh|bash|dash|zsh|node|tsx|ruby|perl|php|python[\d.]*|pypy\d?)\Z")
ENDINGS = ("", ".js", ".mjs", ".cjs", ".ts", "/index.js")
"""What node adds to the name of a script."""


def project_variables(source: HookSource, project: str) -> dict[str, str]:
    """The variables that name the project: for hooks of a folder's settings, the folder that these belong to."""
    folder = source.folder if source.folder and source.name in ("local", "project") else project
    return {"CLAUDE_PROJECT_DIR": folder, "HANDRAIL_PROJECT_DIR": folder}


def missing_script(command: CommandHook, cwd: str, env: Mapping[str, str]) -> str:
    """The program or script that a hook starts and that does not exist; empty if all is there, or it is unclear."""
    words = _words(command, env)
    if not words:
        return ""
    program, *others = words
    if not _is_there(program, cwd, env):
        return program
    while others and INTERPRETERS.match(name := os.path.basename(program)):  # noqa: PTH119  # a text
        word = others.pop(0)
        if name == "env" and ("=" in word or word == "-S"):
            continue
        if word.startswith("-"):
            return ""
        if name != "env":
            return "" if any(os.path.exists(_path(word, cwd) + end) for end in ENDINGS) else word  # noqa: PTH110
        program = word
    return ""


def other_script(command: CommandHook, cwd: str, source: HookSource) -> str:
    """
    The script that a hook of a project would start from a folder in which that name means another file; empty if none.

    What was trusted is the file that the name means in the folder of the settings.
    """
    if not source.folder or source.name not in ("local", "project"):
        return ""
    folder = os.path.realpath(source.folder)
    if os.path.realpath(cwd) == folder:
        return ""
    words = [command.command, *command.args] if command.args is not None else CUT.sub(" ", command.command).split()
    if not words or words[0] == "cd":  # then names mean what they mean there
        return ""
    is_run = False
    for word in words:
        here = _path(word, cwd)
        is_other = os.path.realpath(here) != os.path.realpath(_path(word, folder))
        if ("/" in word or is_run) and is_other and os.path.isfile(here):  # noqa: PTH113
            return word
        is_run = is_run or word in (".", "source") or bool(INTERPRETERS.match(os.path.basename(word)))  # noqa: PTH119
    return ""


def _words(command: CommandHook, env: Mapping[str, str]) -> list[str]:
    """The words of a command with its variables filled in; none if only a shell can tell."""
    if command.args is not None:
        return [command.command, *command.args]
    if SHELL_ONLY.search(command.command):
        return []
    try:
        words = shlex.split(command.command)
    except ValueError:
        return []
    names = [found[1] or found[2] for word in words for found in VARIABLE.finditer(word)]
    if not words or re.match(r"\w+=", words[0]) or not all(name in env for name in names):
        return []
    filled = [VARIABLE.sub(lambda found: env[found[1] or found[2]], word) for word in words]
    return [env.get("HOME", "~") + word[1:] if word.startswith("~/") else word for word in filled]


def _is_there(program: str, cwd: str, env: Mapping[str, str]) -> bool:
    if "/" in program:
        return os.path.exists(_path(program, cwd))  # noqa: PTH110
    return program in BUILT_IN or shutil.which(program, path=env.get("PATH", os.defpath)) is not None


def _path(word: str, cwd: str) -> str:
    return os.path.join(cwd, word)  # noqa: PTH118  # may be absolute


BUILT_IN = frozenset(
    (
        ".", ":", "[", "alias", "bg", "break", "case", "cd", "command", "continue", "echo", "eval", "exec", "exit",
        "export", "false", "for", "function", "getopts", "if", "printf", "pwd", "read", "readonly", "return", "set",
        "shift", "source", "test", "time", "times", "trap", "true", "type", "ulimit", "umask", "unset", "until",
        "wait", "while", "!",
    )
)  # fmt: skip

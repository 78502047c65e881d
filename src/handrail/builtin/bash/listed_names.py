"""
Looks at the names that a git command prints before another command gets them: `wc -l $(git ls-files)`.

The command is run as the line will run it. Names come from the index and from commits, so a hostile repository chooses
them: each must be a plain name of an ordinary file in the working folders that is no secret.
"""

import os
import stat
from collections.abc import Awaitable, Callable, Sequence

from handrail.files.credentials import holds_credentials
from handrail.lazy import lazy_pattern
from handrail.processes.run import Ended
from handrail.shell.secrets import secret

PLAIN = lazy_pattern(
    r"[A-Za-z0-9_.@+,=:%#][A-Za-z0-9_.@+,=:%#/-]*\Z"
)  # nothing that a shell or xargs would read as more
MAX_LISTED = 20_000

RunGit = Callable[[list[str], str], Awaitable[Ended]]


async def name_problem(words: list[str], end: str, folder: str, roots: Sequence[str], run_git: RunGit) -> str:
    """
    Why a command that is given what this git command prints may do more than read the project; empty = it does not.

    `end`: the character that ends a name where it is used. In `$(...)` a NUL does not: the shell leaves it out.
    """
    ended = await run_git(words, folder)
    if ended.cut:
        return "git lists too many names to look at"
    names = [name for name in os.fsdecode(ended.stdout).split(end) if name]
    if len(names) > MAX_LISTED:
        return "git lists too many names to look at"
    return next(filter(None, (problem_of(name, folder, roots) for name in names)), "")


def problem_of(name: str, folder: str, roots: Sequence[str]) -> str:
    if not PLAIN.match(name) or ".." in name.split("/"):
        return f"{name!r}, which git lists, could be taken for something else"
    path = os.path.join(folder, name)  # noqa: PTH118
    real = os.path.realpath(path)
    if secret(path) or secret(real) or holds_credentials(path):
        return f"{name!r}, which git lists, may hold secrets"
    if not any(real.startswith(f"{root.rstrip('/')}/") for root in roots):
        return f"{name!r}, which git lists, leads out of the working folders"
    try:
        kind = os.stat(real).st_mode  # noqa: PTH116
    except OSError:
        return ""  # nothing can be read there
    return "" if stat.S_ISREG(kind) else f"{name!r}, which git lists, is not an ordinary file"

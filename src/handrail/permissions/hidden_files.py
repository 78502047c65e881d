"""Which files searches leave out: those that need a permission question, because a search never asks."""

from collections.abc import Callable
from functools import lru_cache

from handrail.permissions.paths import secret
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour
from handrail.shell.secrets import secret_name

MAX_FOLDERS, MAX_NAMES = 4_096, 32_768

is_secret = lru_cache(MAX_NAMES)(secret_name)


def hidden_file_check(policy: Policy) -> Callable[[str], bool]:
    """
    Build a check whether searches leave out the file at a real path.

    It runs for every file of a search, so what holds for all files of a folder is found out once.
    """
    deny, ask, allow = (policy.index[kind].read for kind in (Behaviour.DENY, Behaviour.ASK, Behaviour.ALLOW))
    shows_secrets = policy.mode == "bypassPermissions"

    def needs_question(folder: str, name: str) -> bool:
        path = f"{folder}/{name}"
        if deny.find(path) or ask.find(path):
            return True
        return not shows_secrets and (is_secret(name) or secret(folder)) and not allow.find(path)

    @lru_cache(MAX_FOLDERS)
    def check_in(folder: str) -> Callable[[str], bool]:
        """The check for the names in one folder, which looks at rules only where one may match."""
        objecting = [quick for index in (deny, ask) if (quick := index.inside(folder)) is not None]
        if secret(folder):
            return lambda name: needs_question(folder, name)
        if not objecting:
            return lambda name: is_secret(name) and needs_question(folder, name)
        return lambda name: (
            (is_secret(name) or any(quick(name) for quick in objecting)) and needs_question(folder, name)
        )

    def is_hidden(path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return check_in(folder)(name)

    return is_hidden

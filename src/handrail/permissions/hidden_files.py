"""Which files searches leave out: those that need a permission question, because a search never asks."""

from collections.abc import Callable
from functools import lru_cache
from posixpath import split

from handrail.permissions.paths import secret
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour
from handrail.shell.secrets import secret_name


def hidden_file_check(policy: Policy) -> Callable[[str], bool]:
    """
    Build a check whether searches leave out the file at a real path: a deny or ask rule, or a secret by name.

    An allow rule or bypassPermissions shows secrets. The check runs for every file of a search, so it is fast.
    """
    deny, ask, allow = (policy.index[kind].read for kind in (Behaviour.DENY, Behaviour.ASK, Behaviour.ALLOW))
    in_secret_folder = lru_cache(maxsize=4096)(secret)
    shows_secrets = policy.mode == "bypassPermissions"

    def left_out(path: str) -> bool:
        if not deny.empty and deny.find(path):
            return True
        if not ask.empty and ask.find(path):
            return True
        if shows_secrets:
            return False
        folder, name = split(path)
        return (secret_name(name) or in_secret_folder(folder)) and not allow.find(path)

    return left_out

"""Which files searches leave out: those that need a permission question, because a search never asks."""

from collections.abc import Callable
from posixpath import split

from handrail.permissions.paths import secret
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour
from handrail.shell.secrets import secret_name


def hidden_file_check(policy: Policy) -> Callable[[str], bool]:
    """Build a check, fast as it runs for every file of a search, whether searches leave out the file at a real path."""
    deny, ask, allow = (policy.index[kind].read for kind in (Behaviour.DENY, Behaviour.ASK, Behaviour.ALLOW))
    shows_secrets = policy.mode == "bypassPermissions"

    def left_out(path: str) -> bool:
        if deny.find(path) or ask.find(path):
            return True
        if shows_secrets:
            return False
        folder, name = split(path)
        return (secret_name(name) or secret(folder)) and not allow.find(path)

    return left_out

"""Which files searches leave out: those that need a permission question, because a search never asks."""

from collections.abc import Callable
from functools import lru_cache

from handrail.files.credentials import holds_credentials, is_name_of_settings
from handrail.permissions.paths import secret
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour
from handrail.shell.secrets import secret_name
from handrail.tools.hidden_files import HiddenFiles

MAX_FOLDERS, MAX_NAMES = 4_096, 32_768


def files_hidden_by(policy: Policy) -> HiddenFiles:
    """What searches leave out by this policy. What holds for a folder or for a name is found out once."""
    deny, ask, allow = (policy.index[kind].read for kind in (Behaviour.DENY, Behaviour.ASK, Behaviour.ALLOW))
    shows_secrets = policy.mode == "bypassPermissions"

    def needs_question(folder: str, name: str) -> bool:
        path = f"{folder}/{name}"
        if deny.find(path) or ask.find(path):
            return True
        if shows_secrets or allow.find(path):
            return False
        return secret_name(name) or secret(folder) or holds_credentials(path)

    @lru_cache(MAX_NAMES)
    def is_suspect_name(name: str) -> bool:
        kept_back = secret_name(name) or is_name_of_settings(name)
        return kept_back or deny.may_match_name(name) or ask.may_match_name(name)

    @lru_cache(MAX_FOLDERS)
    def is_suspect_folder(folder: str) -> bool:
        return secret(folder) or deny.covers(folder) or ask.covers(folder)

    def is_hidden(folder: str, name: str) -> bool:
        return (is_suspect_folder(folder) or is_suspect_name(name)) and needs_question(folder, name)

    return HiddenFiles(is_hidden, is_suspect_folder, is_suspect_name)


def hidden_file_check(policy: Policy) -> Callable[[str], bool]:
    """Build a check whether searches leave out the file at a real path."""
    hidden = files_hidden_by(policy)

    def is_hidden(path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return hidden.is_hidden(folder, name)

    return is_hidden

"""
Whether git would show a password or a token with its settings: `git config --list`, `git remote -v`.

A setting is looked at wherever it comes from, since git shows those of the user beside those of the repository.
"""

import re
from collections.abc import Awaitable, Callable

from handrail.builtin.bash.git_repositories import read_config
from handrail.conversation.redact import build_redactor
from handrail.lazy import lazy_pattern
from handrail.processes.run import Ended
from handrail.shell.model import Segment

LIST_SETTINGS = ("config", "--list", "-z", "--show-scope", "--show-origin")
PATTERNS = frozenset(("--get-regexp", "--get-urlmatch", "--regexp", "--url", "-l", "--list"))
SETTING = lazy_pattern(r"[A-Za-z][\w-]*\.(?:.+\.)?[\w-]+\Z")
SECRET_NAME = lazy_pattern(r"(?:pass(?:word|wd|phrase)?|token|secret|apikey|api-key|extraheader)\Z", re.IGNORECASE)
SIGN_IN = lazy_pattern(r"://[^/@\s]*:[^/@\s]+@|://[^/@\s]{20,}@")  # a password, or a token in the place of a name

RunGit = Callable[[list[str], str], Awaitable[Ended]]


async def shown_secret(segment: Segment, folder: str, run_git: RunGit) -> str:
    """Why a command of git may show a secret in a folder; empty = it shows none, or there is no git."""
    try:
        ended = await run_git(["git", *LIST_SETTINGS], folder)
    except OSError:
        return ""
    if ended.code or ended.cut:
        return "the settings of git could not be looked at for passwords"
    only = only_setting(segment)
    shown = [each for each in read_config(ended.stdout) if each.scope != "command" and only in ("", each.name.lower())]
    name = next((each.name for each in shown if holds_secret(each.name, each.value)), None)
    return (
        ""
        if name is None
        else f"git would show the setting {without_sign_in(name)}, which may hold a password or token"
    )


def only_setting(segment: Segment) -> str:
    """The one setting that is shown, in small letters; empty = it may be any."""
    words = [word.literal or "" for word in segment.argv]
    named = [word for word in words if SETTING.match(word)]
    return named[0].lower() if "config" in words and len(named) == 1 and PATTERNS.isdisjoint(words) else ""


def holds_secret(name: str, value: str) -> bool:
    if SIGN_IN.search(name) or SIGN_IN.search(value) or (value and SECRET_NAME.search(name)):
        return True
    return build_redactor({}).text(value) != value


def without_sign_in(name: str) -> str:
    return re.sub(r"://[^/@\s]*@", "://", name)

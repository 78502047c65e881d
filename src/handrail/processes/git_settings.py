"""
The settings of git repositories: which name programs that git runs by itself, and which are known to be harmless.

Commands that only read ask for certain programs not to be configured; what a sandboxed command leaves behind must have
harmless settings only. Names are in lower case, as `section.subsection.key`.
"""

import re

from handrail.lazy import lazy_pattern

PROGRAMS = {
    "external diff": r"diff\.(?:external|.*\.command)",
    "textconv": r"diff\..*\.textconv",
    "filters": r"filter\..*\.(?:clean|smudge|process)",
    "fsmonitor": r"core\.fsmonitor",
    "signatures": r"gpg\.(?:.*\.)?program",
    "merge drivers": r"merge\..*\.driver",
    "alias": r"alias\.whatchanged",
}
"""By what they are for; each runs when git looks at a repository, without being told to."""
FETCHES = r"extensions\.partialclone|remote\..*\.promisor"
"""With these git fetches an object that is missing. That is harmless as long as nothing names the program for it."""


def matcher(*kinds: str) -> re.Pattern[str]:
    """Matches the settings that name programs of these kinds."""
    return re.compile("(?:" + "|".join(PROGRAMS[kind] for kind in kinds) + r")\Z")


RUNS_OR_FETCHES = lazy_pattern(rf"(?:{'|'.join(PROGRAMS.values())}|{FETCHES})\Z")
HARMLESS = lazy_pattern(
    r"(?:core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol)"
    r"|extensions\.(?:objectformat|refstorage)|user\.(?:name|email)|init\.defaultbranch"
    r"|remote\..*\.(?:url|fetch|tagopt|partialclonefilter)|branch\..*\.(?:remote|merge|rebase)"
    rf"|submodule\.(?:.*\.)?(?:url|active)|pull\.rebase|push\.(?:default|autosetupremote)|gc\.auto|{FETCHES})\Z"
)

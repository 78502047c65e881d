"""Calls of git: the settings and programs that one is given for itself, its sub-command and what follows."""

from handrail.named_tuples import NamedTuple
from handrail.permissions.git_keys import is_harmless
from handrail.shell.model import Segment, Word

# Options before the sub-command whose value is the next word.
VALUES = frozenset("-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source".split())
# The words of a sub-command behind which a program stands; one of a single letter may stand in a cluster.
PROGRAM_WORDS: dict[str, tuple[str, ...]] = {
    name: tuple(words.split())
    for names, words in {
        "rebase": "-x --exec",
        "bisect": "run",
        "submodule": "foreach",
        "difftool": "-x --extcmd",
        "grep": "-O --open-files-in-pager",
        "clone": "-u --upload-pack",
        "fetch pull ls-remote fetch-pack": "--upload-pack --exec",
        "push send-pack": "--receive-pack --exec",
        "archive": "--exec",
        "send-email": "--smtp-server --sendmail-cmd --to-cmd --cc-cmd --header-cmd",
        "filter-branch": "--env-filter --tree-filter --index-filter --parent-filter --msg-filter --commit-filter "
        "--tag-name-filter --setup --subdirectory-filter",
        "instaweb": "-d --httpd -b --browser",
        "for-each-repo hook": "run --config",
    }.items()
    for name in names.split()
}


class GitCall(NamedTuple):
    """The words of git: settings for this call, the sub-command and what follows it."""

    settings: tuple[Word, ...]
    command: str
    rest: tuple[Word, ...]


def read_git(name: str, words: tuple[Word, ...]) -> GitCall:
    if name != "git":
        return GitCall((), name.removeprefix("git-"), words)
    settings: list[Word] = []
    at = 0
    while at < len(words) and words[at].prefix.startswith("-"):
        text = words[at].literal or ""
        if text in ("-c", "--config-env"):
            settings += words[at + 1 : at + 2]
        elif text.startswith("--config-env="):
            settings.append(words[at].cut(len("--config-env=")))
        at += 2 if text in VALUES else 1
    command = words[at].literal or "" if at < len(words) else ""
    return GitCall(tuple(settings), command, words[at + 1 :])


def runs_given_program(segment: Segment) -> bool:
    """Whether a word of git may name a program that it runs: `git -c core.pager=x log`, `git rebase -x y`."""
    call = read_git("git", segment.argv[1:])
    if any(str(word).startswith("--exec-path=") for word in segment.argv[1:]):
        return True
    pairs = [(word.literal or "").partition("=") for word in call.settings]
    if not all(is_harmless(key, value) for key, _, value in pairs):
        return True
    texts = [str(word) for word in call.rest]
    return any(is_spelled(option, text) for option in PROGRAM_WORDS.get(call.command, ()) for text in texts)


def is_spelled(option: str, text: str) -> bool:
    """Whether a word is the option: whole, abbreviated, with a value, or in a cluster."""
    if not option.startswith("-"):
        return text == option
    if option.startswith("--"):
        head = text.partition("=")[0]
        return len(head) > 3 and option.startswith(head)
    return text.startswith("-") and not text.startswith("--") and option[1] in text

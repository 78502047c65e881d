"""Calls of git: the settings and programs that one is given for itself, its sub-command and what follows."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from handrail.named_tuples import NamedTuple
from handrail.permissions.git_keys import is_harmless
from handrail.shell.model import Word


def _rows(table: dict[str, str]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(words.split()) for names, words in table.items() for name in names.split()}


# Options before the sub-command, which cannot be abbreviated; the value of the second kind is the next word.
FLAGS = frozenset(
    """
    --no-pager --paginate -p -P --bare --no-replace-objects --literal-pathspecs --noglob-pathspecs --glob-pathspecs
    --icase-pathspecs --no-optional-locks --no-lazy-fetch --no-advice --exec-path --html-path --man-path --info-path
    --version -v --help -h --list-cmds
    """.split()
)
VALUES = frozenset("-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source".split())
# They run or serve what their words, their input or another machine says.
RUNNERS = frozenset(
    """
    remote-ext remote-fd merge-index submodule--helper bisect--helper difftool--helper mergetool--lib daemon send-email
    instaweb web--browse filter-branch filter-repo for-each-repo hook shell svn p4 cvsimport cvsserver cvsexportcommit
    archimport http-backend fast-import imap-send credential-cache credential-store credential-cache--daemon
    fsmonitor--daemon upload-archive--writer
    """.split()
)
# They run programs that the repository configures, at most.
PLAIN_COMMANDS = frozenset(
    """
    add am annotate apply backfill blame branch bugreport bundle cat-file check-attr check-ignore check-mailmap
    check-ref-format checkout checkout-index cherry clean column commit commit-graph commit-tree config
    count-objects credential describe diagnose diff diff-files diff-index diff-pairs diff-tree fast-export
    fmt-merge-msg for-each-ref format-patch fsck fsck-objects gc get-tar-commit-id hash-object help history
    http-fetch http-push index-pack init init-db interpret-trailers last-modified lfs log ls-files ls-tree
    mailinfo mailsplit maintenance merge merge-base merge-file merge-octopus merge-one-file merge-ours
    merge-recursive merge-recursive-ours merge-recursive-theirs merge-resolve merge-subtree merge-tree mktag
    mktree multi-pack-index mv name-rev notes pack-objects pack-redundant pack-refs patch-id pickaxe prune
    prune-packed quiltimport range-diff read-tree receive-pack reflog refs remote remote-ftp remote-ftps
    remote-http remote-https repack replace replay repo request-pull rerere reset restore rev-list rev-parse rm
    shortlog show show-branch show-index show-ref sparse-checkout stage stash status stripspace subtree switch
    symbolic-ref tag unpack-file unpack-objects update-index update-ref update-server-info upload-archive
    upload-pack url-parse var verify-commit verify-pack verify-tag version whatchanged worktree write-tree
    """.split()
)
# The words of a sub-command behind which a program stands; one of a single letter may stand in a cluster.
PROGRAM_WORDS = _rows(
    {
        "rebase": "-x --exec",
        "bisect": "run",
        "submodule": "foreach",
        "difftool": "-x --extcmd",
        "grep": "-O --open-files-in-pager",
        "clone": "-u --upload-pack",
        "fetch pull ls-remote fetch-pack": "--upload-pack --exec",
        "push send-pack": "--receive-pack --exec",
        "archive": "--exec",
    }
)
# The options whose value is the end of a program's name: a path in it leads to a program elsewhere.
PROGRAM_NAMES = _rows(
    {
        "rebase pull": "-s --strategy",
        "cherry-pick revert": "--strategy",
        "difftool mergetool": "-t --tool",
    }
)
# The letters before which a cluster ends, because the rest is their value.
VALUE_LETTERS = {"clone": "bojc", "rebase": "sXC", "pull": "sXjo", "grep": "efmABC", "difftool": "t"}


class GitSetting(NamedTuple):
    """A setting for one call. `key`: empty if it is not known. `value`: None if it is not known."""

    key: str
    value: str | None

    @property
    def is_harmless(self) -> bool:
        return is_harmless(self.key, self.value)


class GitCall(NamedTuple):
    """The words of git: settings for this call, the sub-command and what follows it."""

    settings: tuple[GitSetting, ...]
    command: str
    rest: tuple[Word, ...]
    is_known: bool = True
    """Whether the sub-command and all options before it are known, and none of these names other settings."""


def read_git(name: str, words: tuple[Word, ...]) -> GitCall:
    if name != "git":
        return GitCall((), name.removeprefix("git-"), words)
    settings: list[GitSetting] = []
    at, is_known = 0, True
    while at < len(words):
        text = words[at].literal
        if text is None:
            break
        if not text.startswith("-"):
            return GitCall(tuple(settings), text, words[at + 1 :], is_known=is_known)
        head, equals, value = text.partition("=")
        follows = not equals and head in VALUES
        if follows and not is_one_argument(words[at + 1 : at + 2]):
            break
        if head == "--config-env":
            given = value if equals else words[at + 1].prefix if at + 1 < len(words) else ""
            settings.append(GitSetting(given.rpartition("=")[0], None))
        elif text == "-c":
            settings += map(read_setting, words[at + 1 : at + 2])
        elif head == "--git-dir":
            folder = value if equals else words[at + 1].literal if at + 1 < len(words) else None
            is_known = is_known and folder == ".git"
        elif head not in VALUES and (head not in FLAGS or (equals and head == "--exec-path")):
            break
        at += 2 if follows else 1
    return GitCall(tuple(settings), "", words[at + 1 :], is_known=at >= len(words))


def is_one_argument(words: Sequence[Word]) -> bool:
    """Whether the shell makes one argument of the first of these words: `$x` may be a value with options behind it."""
    return not words or words[0].single or words[0].alternatives is not None


def read_setting(word: Word) -> GitSetting:
    """What `key=value` sets; a key alone is switched on."""
    text = word.literal
    key, equals, value = (word.prefix if text is None else text).partition("=")
    if text is None:
        return GitSetting(key if equals else "", None)
    return GitSetting(key, value if equals else "true")


def runs_given_program(call: GitCall) -> bool:
    """Whether a word of git may name a program that it runs: `git -c core.pager=x log`, `git rebase -x y`."""
    if not call.is_known or "/" in call.command or call.command in RUNNERS:
        return True
    if not all(setting.is_harmless for setting in call.settings):
        return True
    takes_value = VALUE_LETTERS.get(call.command, "")
    words = call.rest  # also behind a --, which may be the value of an option
    for option in program_words(call.command):
        if any(may_be(option, word, takes_value) for word in words):
            return True
    named = PROGRAM_NAMES.get(call.command, ())
    if any(has_path(values) for option in named for values in values_of(option, words, takes_value)):
        return True
    return views_bisection(call)


def program_words(command: str) -> tuple[str, ...]:
    """The words behind which a program stands; all of them if git may correct the name of the sub-command."""
    if command in PLAIN_COMMANDS or command in PROGRAM_WORDS or command in PROGRAM_NAMES:
        return PROGRAM_WORDS.get(command, ())
    return tuple(word for words in PROGRAM_WORDS.values() for word in words)


def views_bisection(call: GitCall) -> bool:
    """Whether `git bisect view` is given words, of which the first may be a program."""
    shown = [word for word in call.rest if not (word.literal or "").startswith("-")]
    return call.command == "bisect" and len(shown) > 1 and (shown[0].literal or "view") in ("view", "visualize")


def values_of(option: str, words: tuple[Word, ...], takes_value: str) -> Iterator[tuple[Word, ...]]:
    """The words in which the value of an option may stand: its own and the next one."""
    for at, word in enumerate(words):
        if may_be(option, word, takes_value):
            yield tuple(words[at : at + 2])


def has_path(words: tuple[Word, ...]) -> bool:
    return any(word.literal is None or "/" in word.literal for word in words)


def may_be(option: str, word: Word, takes_value: str = "") -> bool:
    """Whether a word is, or may become, the option."""
    texts = word.alternatives
    if texts is not None:
        return any(is_spelled(option, text, takes_value) for text in texts)
    start = word.prefix
    in_cluster = len(option) == 2 and start.startswith("-") and not start.startswith("--")
    return in_cluster or option.startswith(start) or is_spelled(option, start, takes_value)


def is_spelled(option: str, text: str, takes_value: str = "") -> bool:
    """Whether a word is the option: whole, abbreviated, with a value, or in a cluster."""
    if not option.startswith("-"):
        return text == option
    if option.startswith("--"):
        head = text.partition("=")[0]
        return len(head) > 2 and option.startswith(head)
    if text.startswith("--") or not text.startswith("-"):
        return False
    flags = sum(1 for _ in takewhile(lambda letter: letter not in takes_value, text[1:]))
    return option[1] in text[1 : flags + 2]

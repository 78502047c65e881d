"""
Commands that store in a protected file what none of their words names: `git config core.hooksPath x`, `handrail trust`.

What they store makes a program run something later, or obey a file that it ignored.
"""

from itertools import pairwise

from handrail.named_tuples import NamedTuple
from handrail.permissions.git_calls import read_git
from handrail.permissions.git_keys import is_harmless
from handrail.shell.model import CommandVerdict, Segment, Word

GIT_CONFIG, USER_CONFIG, SYSTEM_CONFIG = ".git/config", "~/.gitconfig", "/etc/gitconfig"
# Options of git config whose value is the next word.
CONFIG_VALUES = frozenset("-f --file --blob --type --default --value --url --comment".split())
CONFIG_FLAGS = frozenset(
    """
    --global --system --local --worktree --bool --int --bool-or-int --bool-or-str --path --expiry-date --no-type -z
    --null --name-only --show-origin --show-scope --includes --no-includes --fixed-value --all --append --show-names
    --no-show-names --regexp --add --replace-all --unset --unset-all
    """.split()
)
CONFIG_READS = frozenset(
    "--get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool -l --list get list".split()
)

# The words behind the name of a program, options left out, and the protected file that it then writes.
PROGRAMS: dict[str, tuple[tuple[tuple[str, ...], str], ...]] = {
    program: tuple((tuple(words.split()), file) for all_words, file in rows for words in all_words.split(", "))
    for programs, rows in {
        "handrail": (
            ("trust", "~/.local/state/handrail"),
            ("config set, config unset, agents new, skills new, schedule add, mcp lock", ".handrail"),
            ("mcp add, mcp add-json, mcp remove, mcp reset-project-choices", ".mcp.json"),
            ("plugins add, plugins remove, plugins enable, plugins disable", ".handrail"),
        ),
        "claude": (("mcp add, mcp add-json, mcp add-from-claude-desktop, config set, plugin, plugins", ".claude"),),
        "codex": (("mcp add", ".codex"),),
        "gemini": (("mcp add, extensions install, extensions link, hooks", ".gemini"),),
        "npm pnpm": (("config set, config delete, config edit, c set, set", ".npmrc"),),
        "yarn": (("config set, config unset", ".yarnrc.yml"),),
        "pip pip3": (("config set, config unset, config edit", "~/.config/pip"),),
        "direnv": (("allow, permit, grant", ".envrc"),),
        "mise": (("trust, settings set", "mise.toml"),),
        "husky lefthook": (("install, init", ".git/hooks"),),
        "pre-commit": (("install", ".git/hooks"),),
    }.items()
    for program in programs.split()
}
SHOWS = frozenset(("--show", "--list", "--help", "-h"))
MAX_LOOKED_AT = 40


class StoredSetting(NamedTuple):
    """A protected file that a command writes, and why that matters."""

    file: str
    why: str


def stored_setting(segment: Segment) -> StoredSetting | None:
    """What a command stores, itself or as a command that it may run (`uv run git config ...`)."""
    if segment.verdict is CommandVerdict.READ_ONLY:
        return None
    for at, word in enumerate(segment.argv[:MAX_LOOKED_AT]):
        name = (word.literal or "").rpartition("/")[2]
        rest = segment.argv[at + 1 :]
        found = of_git(name, rest) if name == "git" or name.startswith("git-") else of_program(name, rest)
        if found is not None or (at == 0 and name == "git"):
            return found
    return None


def of_program(name: str, rest: tuple[Word, ...]) -> StoredSetting | None:
    texts = [word.literal or "" for word in rest]
    plain = [text for text in texts if not text.startswith("-")][:6]
    for words, file in PROGRAMS.get(name, ()):
        starts = range(len(plain) - len(words) + 1)
        if any(tuple(plain[at : at + len(words)]) == words for at in starts) and SHOWS.isdisjoint(texts):
            return StoredSetting(file, f"{name} {' '.join(words)} writes it")
    return None


def of_git(name: str, words: tuple[Word, ...]) -> StoredSetting | None:
    call = read_git(name, words)
    if call.command == "config":
        return of_config(call.rest)
    if call.command in ("clone", "init"):
        return of_new_repository(call.rest)
    for word in call.settings:
        text = (word.literal or "").lower()
        if text.startswith("alias.") and "config" in text:  # the alias may store a setting
            return StoredSetting(GIT_CONFIG, "an alias may write it")
    return None


def of_config(words: tuple[Word, ...]) -> StoredSetting | None:
    """What `git config` changes; an option that is not known may be a short form of one that changes more."""
    operands: list[Word] = []
    file, at = GIT_CONFIG, 0
    while at < len(words):
        word, text = words[at], words[at].literal
        at += 1
        if text is None or text == "-" or not text.startswith("-"):
            operands.append(word)
            continue
        head, equals, value = text.partition("=")
        if head in CONFIG_READS:
            return None
        file = {"--global": USER_CONFIG, "--system": SYSTEM_CONFIG}.get(head, file)
        if head in ("-f", "--file"):
            file = value if equals else (words[at].literal if at < len(words) else None) or file
        if head in CONFIG_VALUES:
            at += 0 if equals else 1
        elif text not in CONFIG_FLAGS:
            return any_setting(file)
    return of_operands(file, operands, unsets=any(str(word).startswith("--unset") for word in words))


def of_operands(file: str, operands: list[Word], *, unsets: bool) -> StoredSetting | None:
    verb = operands[0].literal if operands else ""
    if not operands or verb in CONFIG_READS:
        return None
    if verb in ("edit", "rename-section", "remove-section") or not operands[0].single:
        return any_setting(file)
    if verb in ("set", "unset"):
        key, *values = operands[1:] or operands
    elif len(operands) == 1 and not unsets:
        return None
    else:
        key, *values = operands
    names = key.alternatives
    if names is None:
        return any_setting(file)
    value = values[0].literal if values else None
    risky = next((name for name in names if not is_harmless(name, value)), None)
    return None if risky is None else StoredSetting(file, f"{risky} may make git run a program")


def any_setting(file: str) -> StoredSetting:
    return StoredSetting(file, "which setting git config changes is not known")


def of_new_repository(words: tuple[Word, ...]) -> StoredSetting | None:
    """What `git clone -c` and `--template` put into the new repository."""
    texts = [str(word) for word in words]
    for text, follower in pairwise((*texts, "")):
        head, equals, value = text.partition("=")
        if head.startswith("--te") and "--template".startswith(head) and (value if equals else follower):
            return StoredSetting(".git/hooks", "git copies what is in the template")
        given = ""
        if head.startswith("--con") and "--config".startswith(head):
            given = value if equals else follower
        elif text.startswith("-") and not text.startswith("--") and "c" in text:
            given = text.partition("c")[2] or follower
        key, _, set_to = given.partition("=")
        if "." in key and not is_harmless(key, set_to):
            return StoredSetting(GIT_CONFIG, f"{key} may make git run a program")
    return None

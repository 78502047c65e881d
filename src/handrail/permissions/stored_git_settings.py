"""Commands of git that store in a protected file what none of their words names: `git config core.hooksPath x`."""

from collections.abc import Sequence
from itertools import dropwhile, pairwise

from handrail.lazy import lazy_pattern
from handrail.named_tuples import NamedTuple
from handrail.permissions.git_calls import (
    VALUE_LETTERS,
    GitCall,
    GitSetting,
    is_one_argument,
    is_spelled,
    may_be,
    read_git,
    read_setting,
    runs_given_program,
)
from handrail.permissions.git_keys import is_harmless
from handrail.permissions.protected_names import find_protected
from handrail.shell.model import Segment, Word, literal_word

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
ADDRESS_END = lazy_pattern("[/:@]")
STORING = lazy_pattern(r"\b(?:config|clone|init)\b")
QUOTING = lazy_pattern(r"""["'\\$]""")


class StoredSetting(NamedTuple):
    """A protected file that a command writes, and why that matters."""

    file: str
    why: str


def find_git_setting(segment: Segment, name: str, words: tuple[Word, ...]) -> StoredSetting | None:
    call = read_git(name, words)
    if call.command == "config":
        return any_setting(GIT_CONFIG) if has_own_file(segment) else find_config_change(call.rest)
    if call.command in ("clone", "init", "init-db"):
        return find_template(segment, call) or find_new_settings(call.rest)
    if (found := find_unnamed_file(call)) is not None:
        return found
    given = [str(setting.value) for setting in call.settings if setting.key.lower().startswith("alias.")]
    if not call.is_known:
        given += [*map(str, words), *("config" for word in words if may_be("config", word))]
    elif runs_given_program(call):
        given += map(str, call.rest)
    if any(STORING.search(QUOTING.sub("", text)) for text in given):  # git may run what stores a setting
        return any_setting(GIT_CONFIG)
    return None


def find_template(segment: Segment, call: GitCall) -> StoredSetting | None:
    """The template that a setting or a variable names."""
    names = [setting.key.lower() for setting in call.settings]
    if "init.templatedir" in names or "" in names or any(name == "GIT_TEMPLATE_DIR" for name, _ in segment.env):
        return StoredSetting(".git/hooks", "git copies what is in the template")
    return None


def find_unnamed_file(call: GitCall) -> StoredSetting | None:
    """What other commands of git write unnamed."""
    texts = [word.literal or "" for word in call.rest]
    verb = next((text for text in texts if not text.startswith("-")), "")
    match call.command:
        case "maintenance" if verb in ("register", "unregister", "start", "stop"):
            return StoredSetting(USER_CONFIG, f"git maintenance {verb} writes it")
        case "apply" if any(may_be("--unsafe-paths", word) for word in call.rest):
            return StoredSetting(".git/hooks", "git apply --unsafe-paths writes anywhere")
        case "lfs" if verb in ("install", "update"):
            return StoredSetting(".git/hooks", f"git lfs {verb} writes it")
        case "lfs" if verb == "clone":
            return find_new_settings(call.rest[texts.index(verb) + 1 :])
        case "submodule" if verb == "add":
            return find_hidden_folder(texts)
    return None


def has_own_file(segment: Segment) -> bool:
    """Whether a variable of the line names the file that git config writes."""
    return any(name.startswith("GIT_CONFIG") for name, _ in segment.env)


def find_config_change(words: tuple[Word, ...]) -> StoredSetting | None:
    """What `git config` changes; an option that is not known may be a short form of one that changes more."""
    file, at, reads, unsets = GIT_CONFIG, 0, False, False
    while at < len(words) and words[at].may_be_option and words[at].literal != "-":
        text = words[at].literal
        at += 1
        if text is None:
            return any_setting(file)
        head, equals, value = text.partition("=")
        file = {"--global": USER_CONFIG, "--system": SYSTEM_CONFIG}.get(head, file)
        if head in ("-f", "--file"):
            file = value if equals else (words[at].literal if at < len(words) else None) or file
        reads, unsets = reads or head in CONFIG_READS, unsets or head.startswith("--unset")
        if head in CONFIG_VALUES and not equals:
            if not is_one_argument(words[at : at + 1]):
                return any_setting(file)
            at += 1
        elif head in CONFIG_VALUES:
            continue
        elif text == "--":
            break
        elif text not in CONFIG_FLAGS and head not in CONFIG_READS and not text.startswith("-f"):
            return any_setting(file)
    return None if reads else find_change(file, words[at:], unsets=unsets)


def find_change(file: str, operands: Sequence[Word], *, unsets: bool) -> StoredSetting | None:
    verb = operands[0].literal if operands else ""
    if not operands or verb in CONFIG_READS:
        return None
    if verb in ("edit", "rename-section", "remove-section") or not operands[0].single:
        return any_setting(file)
    if verb in ("set", "unset"):
        return find_verb_change(file, operands[1:])
    if len(operands) == 1 and not unsets:
        return None
    return find_key_change(file, operands[0], operands[1:])


def find_verb_change(file: str, words: Sequence[Word]) -> StoredSetting | None:
    """What `git config set` and `unset` change, which take the same options again."""
    rest = [*dropwhile(lambda word: (word.literal or "") in CONFIG_FLAGS, words)]
    if not rest or rest[0].may_be_option:
        return any_setting(file)
    return find_key_change(file, rest[0], rest[1:])


def find_key_change(file: str, key: Word, values: Sequence[Word]) -> StoredSetting | None:
    names = key.alternatives
    if names is None:
        return any_setting(file)
    value = values[0].literal if values else None
    risky = next((name for name in names if not is_harmless(name, value)), None)
    return None if risky is None else StoredSetting(file, f"{risky} may make git run a program")


def any_setting(file: str) -> StoredSetting:
    return StoredSetting(file, "which setting git config changes is not known")


def find_new_settings(words: tuple[Word, ...]) -> StoredSetting | None:
    """What `git clone -c` and `--template` put into the new repository."""
    for at, word in enumerate(words):  # also behind a --, which may be the value of an option
        texts = word.alternatives
        if texts is None and word.may_be_option:
            return StoredSetting(GIT_CONFIG, "which settings the new repository gets is not known")
        follower = words[at + 1] if at + 1 < len(words) else literal_word("")
        for text in texts or ():
            head, equals, value = text.partition("=")
            if head.startswith("--t") and "--template".startswith(head) and (value if equals else str(follower)):
                return StoredSetting(".git/hooks", "git copies what is in the template")
            given = given_setting(text, follower)
            if given is not None and not given.is_harmless:
                return StoredSetting(GIT_CONFIG, f"{given.key or 'a setting'} may make git run a program")
    return find_hidden_folder([word.literal or "" for word in words])


def given_setting(text: str, follower: Word) -> GitSetting | None:
    """The setting that a word of `git clone` brings: `-c a.b=c`, `-qca.b=c`, `--config=a.b=c`."""
    head, equals, value = text.partition("=")
    if head.startswith("--co") and "--config".startswith(head):
        return read_setting(literal_word(value) if equals else follower)
    if not is_spelled("-c", text, VALUE_LETTERS["clone"]):
        return None
    value = text.partition("c")[2]
    return read_setting(literal_word(value) if value else follower)


def find_hidden_folder(texts: Sequence[str]) -> StoredSetting | None:
    """The hidden folder that git names after an address: `https://x/.handrail.git` becomes `.handrail`."""
    for text, follower in pairwise((*texts, "")):
        if text.startswith("-") or (follower and not follower.startswith("-")):
            continue  # the next word may be the folder
        name = ADDRESS_END.split(text.rstrip("/:"))[-1].removesuffix(".git").removesuffix(".bundle")
        if name != text and name.startswith(".") and find_protected([name.casefold()]):
            return StoredSetting(name, "git clones into it")
    return None

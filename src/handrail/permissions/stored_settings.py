"""
Commands that store in a protected file what none of their words names: `git config core.hooksPath x`, `handrail trust`.

What they store makes a program run something later, or obey a file that it ignored.
"""

from collections.abc import Sequence
from itertools import dropwhile, pairwise

from handrail.lazy import lazy_pattern
from handrail.named_tuples import NamedTuple
from handrail.permissions.git_calls import (
    PROGRAM_WORDS,
    RUNNERS,
    VALUE_LETTERS,
    GitCall,
    GitSetting,
    is_spelled,
    may_be,
    read_git,
    read_setting,
    runs_given_program,
)
from handrail.permissions.git_keys import is_harmless
from handrail.permissions.guessed_files import is_described
from handrail.permissions.protected_names import find_protected
from handrail.shell.model import CommandVerdict, Segment, Word, literal_word
from handrail.shell.text_programs import COMMANDS

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

# The words behind the name of a program, and the protected file that it then writes. No words: it always does.
PROGRAMS: dict[str, tuple[tuple[tuple[str, ...], str], ...]] = {
    program: tuple((tuple(words.split()), file) for all_words, file in rows for words in all_words.split(", "))
    for programs, rows in {
        "handrail": (
            ("trust", "~/.local/state/handrail"),
            ("config set, config unset, agents new, skills new, schedule add, mcp lock", ".handrail"),
            ("mcp add, mcp add-json, mcp remove, mcp reset-project-choices", ".mcp.json"),
            ("plugins add, plugins remove, plugins enable, plugins disable", ".handrail"),
        ),
        "claude": (
            ("mcp add, mcp add-json, mcp add-from-claude-desktop, mcp remove, config set, config add", ".claude"),
            ("plugin install, plugin enable, plugin disable, plugin uninstall, plugin update", ".claude"),
            ("plugin marketplace add, plugin marketplace remove, plugin marketplace update", ".claude"),
        ),
        "codex": (("mcp add, mcp remove", ".codex"),),
        "gemini": (("mcp add, mcp remove, extensions install, extensions link, hooks migrate", ".gemini"),),
        "npm pnpm": (("config set, config delete, config edit, con set, conf set, confi set, c set, set", ".npmrc"),),
        "yarn": (("config set, config unset, set version, plugin import", ".yarnrc.yml"),),
        "pip pip3": (("config set, config unset, config edit", "~/.config/pip"),),
        "bundle": (("config set", ".bundle/config"),),
        "jj": (("config set, config edit, config unset", "~/.config/jj"),),
        "kubectl": (("config set, config set-credentials, config set-cluster, config set-context", "~/.kube/config"),),
        "aws": (("configure set", "~/.aws/config"),),
        "systemctl": (("enable, link, edit", "~/.config/systemd/user"),),
        "direnv": (("allow, permit, grant", ".envrc"),),
        "mise": (("trust, use, set, settings set", "mise.toml"),),
        "husky": (("init, install, add, ", ".git/hooks"),),
        "lefthook": (("install, add", ".git/hooks"),),
        "overcommit": (("", ".git/hooks"),),
        "pre-commit": (("install, autoupdate, init-templatedir", ".git/hooks"),),
    }.items()
    for program in programs.split()
}
# Programs and the word behind which names of packages stand.
PACKAGE_PROGRAMS = frozenset("pip pip3 npm pnpm yarn bun uv pipx cargo gem brew apt apt-get conda poetry go".split())
PACKAGE_VERBS = frozenset("install i add remove uninstall update upgrade view info show search download get".split())
# The words before the name of a program that they start.
STARTERS = frozenset("npx bunx pnpx uvx exec dlx x run -- sudo env".split())
PROMPTS = frozenset(("-p", "--print", "--prompt", "exec"))
AGENTS = frozenset(("handrail", "claude", "codex", "gemini"))
SHOWS = frozenset(("--show", "--list", "--help", "-h"))
ADDRESS_END = lazy_pattern("[/:@]")
STORING = lazy_pattern(r"\b(?:config|clone|init)\b")
QUOTING = lazy_pattern(r"""["'\\$]""")
MAX_LOOKED_AT = 40


class StoredSetting(NamedTuple):
    """A protected file that a command writes, and why that matters."""

    file: str
    why: str


def stored_setting(segment: Segment) -> StoredSetting | None:
    """What a command stores, itself or as a command that it may run (`uv run git config ...`)."""
    if segment.verdict is CommandVerdict.READ_ONLY:
        return None
    before: str | None = ""
    for at, word in enumerate(segment.argv[: 1 if takes_names(segment) else MAX_LOOKED_AT]):
        rest = segment.argv[at + 1 :]
        for text in word.alternatives or ():
            name = program_name(text)
            alone = at == 0 or before in STARTERS
            found = of_git(segment, name, rest) if is_git(name) else of_program(name, rest, alone=alone)
            if found is not None:
                return found
        before = word.literal
    return None


def takes_names(segment: Segment) -> bool:
    """Whether no word of a command can be another command: they are files, branches, or packages to install."""
    if is_described(segment) and segment.name not in COMMANDS:
        return True
    if segment.name == "git":
        call = read_git("git", segment.argv[1:])
        return call.is_known and call.command not in RUNNERS and call.command not in PROGRAM_WORDS
    verb = next((text for word in segment.argv[1:] if (text := word.literal or "") and not text.startswith("-")), "")
    return segment.name in PACKAGE_PROGRAMS and verb in PACKAGE_VERBS


def program_name(text: str) -> str:
    """The name of a program without its folder and its version: `npx husky@9`, `pip3.12`, `git.exe`."""
    name = text.rpartition("/")[2].partition("@")[0].removesuffix(".exe")
    return "pip3" if name.startswith("pip3.") else name


def is_git(name: str) -> bool:
    return name == "git" or name.startswith("git-")


def of_program(name: str, rest: tuple[Word, ...], *, alone: bool) -> StoredSetting | None:
    """What a program stores. `alone`: its name is a command even if no word of a command follows."""
    rows = PROGRAMS.get(name, ())
    texts = [word.literal for word in rest] if rows else []
    for words, file in rows:
        if (words or alone) and begins_with(texts, words) and not only_shows(name, texts, words):
            return StoredSetting(file, f"{' '.join((name, *words))} writes it")
    return None


def only_shows(name: str, texts: list[str | None], words: tuple[str, ...]) -> bool:
    """Whether the words are a prompt, or what is trusted is only shown. Others would be options of another program."""
    if name == "handrail" and words == ("trust",) and not SHOWS.isdisjoint(texts):
        return True
    before = texts[: texts.index(words[0])] if words and words[0] in texts else []
    return name in AGENTS and not PROMPTS.isdisjoint(before)


def begins_with(texts: Sequence[str | None], words: Sequence[str]) -> bool:
    """Whether these are the first words of a command, apart from options and what may be the value of one."""
    left = [*words]
    after_option = False
    for text in texts:
        if not left:
            break
        if text is not None and text.startswith("-"):
            after_option = True
        elif text is None or text == left[0]:
            del left[0]
            after_option = False
        elif after_option:
            after_option = False
        else:
            return False
    return not left


def of_git(segment: Segment, name: str, words: tuple[Word, ...]) -> StoredSetting | None:
    call = read_git(name, words)
    if call.command == "config":
        return any_setting(GIT_CONFIG) if has_own_file(segment) else of_config(call.rest)
    if call.command in ("clone", "init", "init-db"):
        return of_template(segment, call) or of_new_repository(call.rest)
    if (found := of_verb(call)) is not None:
        return found
    given = [str(setting.value) for setting in call.settings if setting.key.lower().startswith("alias.")]
    if not call.is_known:
        given += [*map(str, words), *("config" for word in words if may_be("config", word))]
    elif runs_given_program(call):
        given += map(str, call.rest)
    if any(STORING.search(QUOTING.sub("", text)) for text in given):  # git may run what stores a setting
        return any_setting(GIT_CONFIG)
    return None


def of_template(segment: Segment, call: GitCall) -> StoredSetting | None:
    """The template that a setting or a variable names."""
    names = [setting.key.lower() for setting in call.settings]
    if "init.templatedir" in names or "" in names or any(name == "GIT_TEMPLATE_DIR" for name, _ in segment.env):
        return StoredSetting(".git/hooks", "git copies what is in the template")
    return None


def of_verb(call: GitCall) -> StoredSetting | None:
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
            return of_new_repository(call.rest[texts.index(verb) + 1 :])
        case "submodule" if verb == "add":
            return of_folder(texts)
    return None


def has_own_file(segment: Segment) -> bool:
    """Whether a variable of the line names the file that git config writes."""
    return any(name.startswith("GIT_CONFIG") for name, _ in segment.env)


def of_config(words: tuple[Word, ...]) -> StoredSetting | None:
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
        if head in CONFIG_VALUES:
            at += 0 if equals else 1
        elif text == "--":
            break
        elif text not in CONFIG_FLAGS and head not in CONFIG_READS and not text.startswith("-f"):
            return any_setting(file)
    return None if reads else of_operands(file, words[at:], unsets=unsets)


def of_operands(file: str, operands: Sequence[Word], *, unsets: bool) -> StoredSetting | None:
    verb = operands[0].literal if operands else ""
    if not operands or verb in CONFIG_READS:
        return None
    if verb in ("edit", "rename-section", "remove-section") or not operands[0].single:
        return any_setting(file)
    if verb in ("set", "unset"):
        return of_config_verb(file, operands[1:])
    if len(operands) == 1 and not unsets:
        return None
    return of_key(file, operands[0], operands[1:])


def of_config_verb(file: str, words: Sequence[Word]) -> StoredSetting | None:
    """What `git config set` and `unset` change, which take the same options again."""
    rest = [*dropwhile(lambda word: (word.literal or "") in CONFIG_FLAGS, words)]
    if not rest or rest[0].may_be_option:
        return any_setting(file)
    return of_key(file, rest[0], rest[1:])


def of_key(file: str, key: Word, values: Sequence[Word]) -> StoredSetting | None:
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
    return of_folder([word.literal or "" for word in words])


def given_setting(text: str, follower: Word) -> GitSetting | None:
    """The setting that a word of `git clone` brings: `-c a.b=c`, `-qca.b=c`, `--config=a.b=c`."""
    head, equals, value = text.partition("=")
    if head.startswith("--co") and "--config".startswith(head):
        return read_setting(literal_word(value) if equals else follower)
    if not is_spelled("-c", text, VALUE_LETTERS["clone"]):
        return None
    value = text.partition("c")[2]
    return read_setting(literal_word(value) if value else follower)


def of_folder(texts: Sequence[str]) -> StoredSetting | None:
    """The hidden folder that git names after an address: `https://x/.handrail.git` becomes `.handrail`."""
    for text, follower in pairwise((*texts, "")):
        if text.startswith("-") or (follower and not follower.startswith("-")):
            continue  # the next word may be the folder
        name = ADDRESS_END.split(text.rstrip("/:"))[-1].removesuffix(".git").removesuffix(".bundle")
        if name != text and name.startswith(".") and find_protected([name.casefold()]):
            return StoredSetting(name, "git clones into it")
    return None

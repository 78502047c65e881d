"""
Commands that store in a protected file what none of their words names: `git config core.hooksPath x`, `handrail trust`.

What they store makes a program run something later, or obey a file that it ignored.
"""

from collections.abc import Sequence

from handrail.permissions.git_calls import PROGRAM_WORDS, RUNNERS, read_git
from handrail.permissions.guessed_files import is_described
from handrail.permissions.stored_git_settings import StoredSetting, find_git_setting
from handrail.shell.model import CommandVerdict, Segment, Word
from handrail.shell.text_programs import COMMANDS

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
MAX_LOOKED_AT = 40


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
            found = (
                find_git_setting(segment, name, rest) if is_git(name) else find_program_setting(name, rest, alone=alone)
            )
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


def find_program_setting(name: str, rest: tuple[Word, ...], *, alone: bool) -> StoredSetting | None:
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

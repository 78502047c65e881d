"""
Lists the commands that programs are given to run, for rules that deny or ask. It is never a reason to allow.

Programs whose command line can be told from their own options have table entries, and what they run has segments
(`timeout`, `sh -c`). Here are the others: no grammar is followed, every word that could be a command counts as one.
"""

from collections.abc import Iterable
from itertools import pairwise

from handrail.lazy import lazy_pattern
from handrail.shell import tables
from handrail.shell.model import CommandVerdict, Does, PieceKind, Segment, Word
from handrail.shell.named_programs import option_programs, option_texts, possible_programs
from handrail.shell.possible_commands import ASSIGNMENT, Words, beginnings, possible_commands
from handrail.shell.text_programs import (
    BRACKETS,
    FILTERS,
    ProgramText,
    TextKind,
    fed_text,
    listed_calls,
    program_text,
    written_scripts,
)

# Behind one of these words (none: anywhere) each word may begin a command, and each text may be a command line.
AFTER: dict[str, frozenset[str]] = {
    name: frozenset(words.split())
    for names, words in {
        "docker docker-compose podman nerdctl": "exec run create",
        "kubectl oc": "exec run debug",
        "git": "submodule bisect",
        "npm": "exec x",
        "yarn pnpm": "exec dlx",
        "bun": "x",
        "npx pnpx bunx uvx": "",
        "uv poetry pipenv pdm hatch conda mamba micromamba heroku foreman op doppler rye pixi": "run",
        "bundle bundler mise rtx asdf direnv rbenv pyenv nodenv lxc incus aws-vault chamber": "exec",
        "machinectl": "shell",
        "sops": "exec-env exec-file",
        "nix": "run shell develop",
        "ip": "exec",
        "cargo": "watch",
        "hash": "-p",
        "fd fdfind": "-x -X --exec --exec-batch",
        "tmux valgrind screen gdb parallel entr watchexec nodemon hyperfine concurrently time bwrap proot numactl": "",
        "cgexec choom arch faketime eatmydata tini dumb-init gosu su-exec sshpass autossh mosh pssh parallel-ssh": "",
        "dbus-launch start-stop-daemon dotenv env-cmd cross-env csh tcsh sg run-one chronic ts": "",
        "guix flatpak-spawn toolbox distrobox ssh-agent dbus-run-session xvfb-run unbuffer rlwrap fakeroot": "",
        "firejail systemd-run systemd-inhibit caffeinate torsocks proxychains proxychains4 capsh envdir chpst": "",
        "setuidgid": "",
        "daemonize nocache cpulimit perf rr pkexec runcon schroot arch-chroot systemd-nspawn ifne pee reflex": "",
        "cmake": "-E",
        "coverage": "run",
    }.items()
    for name in names.split()
}
# Some of their texts are command lines.
TEXTS = frozenset(
    """
    git awk gawk mawk nawk original-awk sed vim nvim vi ex ed view vimdiff emacs man less rsync scp sftp zip tar make
    gmake psql mysql sqlite3 expect complete bind fzf socat nc ncat netcat crontab nix-shell vagrant gcloud fly ansible
    npx npm ssh compgen dc
    """.split()
)
# Their texts are programs in which a command line may be a string like any other.
PROGRAMS = FILTERS  # read closely: only if they start something
# With these words of git a text may be a command: settings, and sub-commands that run one, here or on the other side.
GIT_RUNS = frozenset(
    """
    -c --config-env config rebase filter-branch difftool mergetool ls-remote clone fetch fetch-pack pull push send-pack
    send-email archive daemon instaweb -O --open-files-in-pager remote-ext
    """.split()
)
VARIABLES = lazy_pattern(
    r"\w*(?:PAGER|EDITOR|VISUAL|_COMMAND|_SSH|_RSH|ASKPASS|BROWSER|PS[0-4]|ENV|_DIFF|GIT_CONFIG_\w+|LESSOPEN|LESSCLOSE"
    r"|SHELL)\Z"
)
TEXT = lazy_pattern(r"[\s;&|`$(!]")
ADDRESS = lazy_pattern(r"(?i:exec|system|shell):")  # of socat: EXEC:rm
SPLITS = lazy_pattern(r"-\w*S|--s").match  # of env: the text is split into words
READERS = frozenset(("read", "mapfile", "readarray"))  # what they put into variables may be evaluated later
COPIERS = frozenset(("ln", "cp", "mv", "install"))
MAX_TEXTS = 20
MAX_SETTINGS = 3


def wrapped_commands(segments: tuple[Segment, ...]) -> tuple[tuple[Words, ...], tuple[Words, ...]]:
    """The commands in the words of segments: those that may well be run, and those that may as well be data."""
    likely, possible = dict[Words, None](), dict[Words, None]()
    possible.update(dict.fromkeys(found for text in written_scripts(segments) for found in of_text(text)))
    for segment in segments:
        possible.update(dict.fromkeys(of_evaluated(word for _, word in segment.env)))
        if segment.name in READERS:
            possible.update(dict.fromkeys(found for text in fed_text(segment)[0] for found in of_text(text)))
        if segment.verdict is CommandVerdict.READ_ONLY:
            continue
        texts = [str(word) for name, word in segment.env if VARIABLES.match(name)]
        texts += [str(effect.word) for effect in segment.effects if effect.does is Does.STARTS and effect.word]
        likely.update(dict.fromkeys(found for text in texts for found in of_text(text)))
        if segment.name in PROGRAMS and not segment.does(Does.STARTS):
            continue
        sure, guessed = of_words(segment.name, [str(word) for word in segment.argv])
        likely.update(dict.fromkeys(sure))
        guessed += [*of_program(program_text(segment)), *of_evaluated(segment.argv[1:])]
        guessed += [found for value in option_programs(segment) for found in at_each(value.split(","))]
        guessed += [found for words in possible_programs(segment) for found in at_each(words)]
        guessed += of_texts([str(word) for word in (*option_texts(segment), *(word for _, word in segment.env))])
        if segment.redirections:
            guessed += copied_programs([str(word) for word in segment.argv[1:]])
        possible.update(dict.fromkeys(guessed))
    return tuple(likely), tuple(found for found in possible if found not in likely)


def of_words(name: str, words: list[str]) -> tuple[list[Words], list[Words]]:
    behind = words[1:]
    if name in AFTER and (not AFTER[name] or (at := first(behind, AFTER[name])) is not None):
        rest = behind if not AFTER[name] else behind[(at or 0) + 1 :]
        return [*at_each(rest), *of_texts(rest)], []
    if name in TEXTS:
        if name != "git":
            return of_texts(behind), []
        if "config" in behind:
            return of_texts(behind), at_each(behind[behind.index("config") + 1 :])
        if not any(word in GIT_RUNS or word.startswith(("-O", "--open")) for word in behind):
            return [], []
        glued = [word[2:] for word in behind if word.startswith(("-O", "-x"))]  # `git grep -Orm x`
        values = [word for option, word in pairwise(behind) if option.startswith("-")]
        return of_texts(behind), [found for word in (*glued, *values) for found in at_each([word])]
    if name == "env":
        return (of_texts(behind) if any(map(SPLITS, behind)) else []), []
    if name in COPIERS:
        return [], copied_programs(behind)
    if name and tables.lookup(name) is None:
        return [], [*at_each(behind), *of_texts(list(filter(is_function, words))), *of_texts(behind)]
    return [], []


def is_function(word: str) -> bool:
    """Whether it sets a variable whose name is none, as bash hands on functions: `BASH_FUNC_ls%%=() { rm x; }`."""
    return "=" in word and not word.startswith("-") and not ASSIGNMENT.match(word)


def copied_programs(words: list[str]) -> list[Words]:
    """The programs that may get another name."""
    return [(word.rpartition("/")[2],) for word in words if "/bin/" in word]


def of_program(given: ProgramText) -> list[Words]:
    """The commands in the texts that a program runs, as lines and as strings of another language."""
    found = [each for text in given.fed for each in of_text(text)]
    if given.kind is TextKind.LANGUAGE:
        found += of_texts(list(given.texts))
        for text in (*given.texts, *given.fed):
            found += [*listed_calls(text), *possible_commands(BRACKETS.sub(";", text))]
    return found


def of_evaluated(words: Iterable[Word]) -> list[Words]:
    """The commands in texts that bash runs where it evaluates a name or a number: `declare 'a[$(rm x)]=1'`."""
    texts = [text for word in words if (text := written_text(word)) and is_evaluated(text)]
    return [found for text in texts[:MAX_TEXTS] for found in of_text(text)]


def is_evaluated(text: str) -> bool:
    """Whether bash runs a command where it evaluates a text."""
    return "$(" in text or "`" in text


def written_text(word: Word) -> str:
    """The word as it is when no file matches it; empty if it has an expansion."""
    if (text := word.literal) is not None:
        return text
    known = all(piece.kind in (PieceKind.LITERAL, PieceKind.GLOB) for piece in word.pieces)
    return "".join(piece.text for piece in word.pieces) if known else ""


def first(words: list[str], wanted: frozenset[str]) -> int | None:
    return next((at for at, word in enumerate(words) if word in wanted), None)


def at_each(words: list[str]) -> list[Words]:
    """A command begins at each word that is no option."""
    return [found for found in beginnings(["", *words]) if found[0] and not found[0].startswith("-")]


def of_texts(words: list[str]) -> list[Words]:
    texts = [word for word in words if TEXT.search(word) or "=" in word or ADDRESS.match(word)]
    return [found for text in texts[:MAX_TEXTS] for found in of_text(text)]


def of_text(text: str) -> list[Words]:
    """The commands of a text, also of one that follows the name of an option or a setting."""
    return [found for part in command_texts(text) for found in possible_commands(part)]


def command_texts(text: str) -> list[str]:
    """The text, and what follows the names of options and settings in it: `--checkpoint-action=exec=rm x`."""
    found = [text, *text.split(":", 1)[1:]]
    rest = text
    for _ in range(MAX_SETTINGS):
        _, is_setting, rest = rest.partition("=")
        found += [rest] if is_setting else []
    return [*found, text[2:]] if text.startswith("-") and not text.startswith("--") else found

"""
Tells whether a text that a program runs has a command whose name is not known before it runs.

`$(echo rm) x`, `/bin/r? x` and `cat f | sh` are such commands. No grammar is followed: the text is cut as in
`possible_commands`, and it errs on the side of too much, for rules that deny or ask; it is never a ground to allow.
"""

import re
from collections.abc import Iterator

from handrail.lazy import lazy_pattern
from handrail.shell import tables
from handrail.shell.model import CommandVerdict, Does, PieceKind, Segment, Word
from handrail.shell.named_programs import DEVELOPER_TOOLS, option_programs, option_texts
from handrail.shell.possible_commands import ASSIGNMENT, beginnings, cut, may_run, visible
from handrail.shell.text_programs import (
    FILTERS,
    SHELLS,
    STARTERS,
    STDIN,
    TEXT_OPTION,
    TextKind,
    is_file_pattern,
    kind_of,
    program_text,
)
from handrail.shell.wrapped_commands import (
    AFTER,
    COPIERS,
    GIT_RUNS,
    PROGRAMS,
    SPLITS,
    TEXT,
    TEXTS,
    VARIABLES,
    command_texts,
    is_function,
)

SUBSTITUTED = "\ue000"  # stands for what a substitution prints
EXPANDED = lazy_pattern(rf"[$`*?{SUBSTITUTED}]|\[.|.[@+!]\Z|\{{\}}|.\{{.*(?:,|\.\.).*\}}|\{{.*(?:,|\.\.).*\}}.")
NESTED_BRACES = lazy_pattern(r"\{.*\{.*(?:,|\.\.)")
PROMPTS = lazy_pattern(r"PS[0-4]\Z|ENV\Z")  # expanded, and not run
LOADER = lazy_pattern(r"ld[^/]*\.so[\d.]*\Z")
PROGRAM_FILE = lazy_pattern(r"/s?bin/|\b(?:which|command -v|type -[pP])\b")
RUNS_FILES = frozenset(("run-parts",))  # all programs of a folder
EDITORS = frozenset("vim nvim vi ex view vimdiff".split())
# A text for one of them may be put together there: `exe "!r"."m x"`.
EDITOR_STARTS = lazy_pattern(r"\b(?:exe\w*|call|system\w*|so(?:urce)?|py\w*|lua|ruby|perl|norm\w*|job\w*|term\w*)\b|=")
READ_LATER = frozenset("at batch crontab newgrp ed parallel fc".split())
QUERIES = frozenset("psql mysql mariadb sqlite3 dc".split())
# What a text for one of them needs to start a program: `\!`, `.shell`, `\o |cat`, `copy ... from program`.
QUERY_STARTS = lazy_pattern(
    r"[\\!|`]|^\s*\.|system|source|pager|program|edit|load|sys_|outfile", re.MULTILINE | re.IGNORECASE
)
# They run the first word that is no option and no value of one; the words after it are its arguments.
RUNNERS = frozenset(
    """
    npx pnpx bunx uvx bun npm yarn pnpm uv poetry pipenv pdm hatch conda mamba micromamba rye pixi bundle bundler rbenv
    pyenv nodenv cargo time valgrind heroku foreman op doppler parallel
    """.split()
)
MAY_TAKE_VALUE = lazy_pattern(r"--?[A-Za-z][A-Za-z-]*\Z")
CONTAINERS = frozenset("docker docker-compose podman nerdctl kubectl oc".split())
CONTAINER_FLAGS = lazy_pattern(
    r"-[itdPqT]+\Z|--(?:rm|init|interactive|tty|detach|privileged|quiet|read-only|stdin)(?:=.*)?\Z"
)
CONTAINER_VALUES = frozenset(
    """
    -v --volume -e --env -w --workdir -u --user --name -p --publish --mount --env-file --network --net -h --hostname
    -l --label --platform --cpus -m --memory --entrypoint --add-host -n --namespace -c --container --context --image
    """.split()
)


def runs_unknown_name(segment: Segment) -> bool:
    """Whether a text that the command runs, or a command among its words, has a name that is not known."""
    settings = [(name, word) for name, word in segment.env if VARIABLES.match(name)]
    if any(word.literal is None if PROMPTS.match(name) else has_unknown_name(str(word)) for name, word in settings):
        return True
    if segment.verdict is CommandVerdict.READ_ONLY:
        return False
    words = (*command_words(segment), *option_programs(segment))
    if any(map(has_unknown_name, texts_run(segment))) or any(map(is_unknown, words)):
        return True
    if runs_unknown_text(segment) or may_run_argument(segment):
        return True
    return runs_unknown_word(segment) or copies_unknown_program(segment) or segment.name in RUNS_FILES


def runs_unknown_text(segment: Segment) -> bool:
    """Whether a text that it is given as it stands may be a command line: `snap run --shell x -c '$(echo rm) x'`."""
    if segment.name in TEXTS or segment.name in AFTER or kind_of(segment.name) is not None:
        return False  # see `texts_run`
    return any(begins_unknown(text) for word in option_texts(segment) if (text := word.literal))


def may_run_argument(segment: Segment) -> bool:
    """Whether it is a program of which nothing is known, with a word that may be any command: `foo $x y`."""
    name = segment.argv[0].literal if segment.argv else None
    if name is None or not is_stranger(name):
        return False
    words = segment.argv[1:]
    if any(word.literal is None and is_unknown(str(word)[:1]) and not is_file_pattern(word) for word in words):
        return True
    return any(map(begins_unknown, map(str, words)))


def is_stranger(name: str) -> bool:
    """Whether nothing is known of a program; a script of a project takes what arguments it likes."""
    plain = name.rpartition("/")[2]
    if "/" in name and not PROGRAM_FILE.search(name):
        return False
    known = tables.lookup(plain) is not None or plain in AFTER or plain in TEXTS or plain in DEVELOPER_TOOLS
    return not known and kind_of(plain) is None


def begins_unknown(text: str) -> bool:
    """Whether a text that may be a command line begins with a name that is not known, or hands one on."""
    if not TEXT.search(text):
        return False
    for words in cut(visible(text), 0, SUBSTITUTED):
        given = [word for word in words if word]
        hands_on = bool(given) and tables.lookup(given[0]) is not None and may_run(given[0])
        if any(map(is_unknown_command, [*beginnings(given)][: None if hands_on else 1])):
            return True
    return False


def runs_unknown_word(segment: Segment) -> bool:
    """Whether a word that may be an option, or the command or program itself, is not known: `command -p $x y`."""
    if segment.name in FILTERS:
        operands = [word for word in segment.argv[1:] if not str(word).startswith("-")]
        return bool(operands) and not written_pieces(operands[0])
    if tables.lookup(segment.name) is None or not may_run(segment.name):
        return False
    unclear = (each.word for each in segment.effects if each.does is Does.UNLISTED and each.word)
    return any(word.literal is None for word in unclear)


def copies_unknown_program(segment: Segment) -> bool:
    """Whether it may give a program that is not known another name: `cp /bin/r? z`, `ln -s "$(which rm)" z`."""
    unknown = [str(word) for word in segment.argv[1:] if word.literal is None]
    return (segment.name in COPIERS or bool(segment.redirections)) and any(map(PROGRAM_FILE.search, unknown))


def written_pieces(word: Word) -> str:
    return "".join(piece.text for piece in word.pieces if piece.kind is PieceKind.LITERAL)


def has_unknown_name(text: str) -> bool:
    """Whether a command of the text, also of one behind the name of an option or a setting, has an unknown name."""
    return any(
        is_unknown_command(words)
        for part in command_texts(text)
        for given in cut(visible(part), 0, SUBSTITUTED)
        if given[:1] != ["for"] or given[2:3] != ["in"]
        for words in beginnings([word for word in given if word])
    )


def is_unknown_command(words: tuple[str, ...]) -> bool:
    name, *rest = words
    return is_unknown(name) or runs_input(name, rest)


def is_unknown(name: str) -> bool:
    """Whether the shell would make another word of it; `[` is a program."""
    return EXPANDED.search(name) is not None or NESTED_BRACES.search(name) is not None


def runs_input(name: str, words: list[str]) -> bool:
    """Whether a command in a text runs what it reads: `cat f | sh`, `... | xargs env`."""
    if name == "xargs":
        return bool(words) and tables.lookup(words[-1]) is not None and may_run(words[-1])
    kind = kind_of(name)
    if kind is TextKind.SHELL and any(re.match(r"-[A-Za-z]*s", word) for word in words):
        return True
    if kind in (TextKind.SHELL, TextKind.LANGUAGE) or name in ("source", ".", *READ_LATER):
        told = any(TEXT_OPTION.match(word) for word in words)
        return not told and all(word.startswith("-") or STDIN.match(word) for word in words)
    return False


def texts_run(segment: Segment) -> Iterator[str]:
    """The texts of a command in which names are looked for; a text of an interpreter is judged by `program_text`."""
    name, words = segment.name, segment.argv[1:]
    yield from (str(effect.word) for effect in segment.effects if effect.does is Does.STARTS and effect.word)
    given = program_text(segment)
    if given.kind in (TextKind.COMMANDS, TextKind.FILE):
        yield from (text for text in given.fed if may_start(name, text))
        if given.kind is TextKind.FILE and any("$" in text or STARTERS.search(text) for text in given.fed):
            yield SUBSTITUTED  # variables of make, and what awk starts
    if name in EDITORS and any(map(EDITOR_STARTS.search, (*given.texts, *given.fed))):
        yield SUBSTITUTED
    if segment.argv and is_function(str(segment.argv[0])):
        yield str(segment.argv[0])
    if runs_texts(segment) or given.kind is TextKind.COMMANDS:
        yield from (str(word) for word in words if is_text(word) and may_start(name, str(word)))


def runs_texts(segment: Segment) -> bool:
    """Whether each word that is a text may be a command line."""
    name, words = segment.name, [str(word) for word in segment.argv[1:]]
    if name in PROGRAMS:
        return segment.does(Does.STARTS)
    if name == "env":
        return any(map(SPLITS, words))
    if tables.lookup(name) is None and any(word.rpartition("/")[2] in SHELLS for word in words):
        return True
    if name == "git":
        return any(word in GIT_RUNS or word in AFTER["git"] or word.startswith(("-O", "--open")) for word in words)
    return name in TEXTS or name in AFTER


def may_start(name: str, text: str) -> bool:
    return name not in QUERIES or QUERY_STARTS.search(text) is not None


def is_text(word: Word) -> bool:
    """Whether it is a text rather than a name: what is written in it says so, not what it expands to."""
    return TEXT.search(written_pieces(word)) is not None


def command_words(segment: Segment) -> list[str]:
    """The words that may be the name of the command that a wrapper without a table entry runs."""
    name, words = segment.name, [str(word) for word in segment.argv[1:]]
    if LOADER.match(name):
        return words
    if name not in AFTER:
        return []
    if AFTER[name]:
        at = next((at for at, word in enumerate(words) if word in AFTER[name]), None)
        if at is None:
            return []
        words = words[at + 1 :]
    if name in CONTAINERS:
        behind = behind_container(name, words)
        return words if behind is None else leading(behind)
    return leading(words) if name in RUNNERS else words


def leading(words: list[str]) -> list[str]:
    """Words up to the first that surely is the command: no option, no setting, and behind no option."""
    before = ""
    for at, word in enumerate(words):
        carries = tables.lookup(word) is not None and may_run(word)
        if not (word.startswith("-") or MAY_TAKE_VALUE.match(before) or ASSIGNMENT.match(word) or carries):
            return words[: at + 1]
        before = word
    return words


def behind_container(name: str, words: list[str]) -> list[str] | None:
    """The words behind the image, the container or the pod; None where an option before it is not known."""
    if name in ("kubectl", "oc") and "--" in words:
        return words[words.index("--") + 1 :]
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if not CONTAINER_FLAGS.match(words[at]) and "=" not in words[at]:
            if words[at] not in CONTAINER_VALUES:
                return None
            at += 1
        at += 1
    return words[at + 1 :]

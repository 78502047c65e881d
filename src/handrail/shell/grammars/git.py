"""Words of git: formats, settings, names, revisions and paths."""

import re

from handrail.errors import UnclearError
from handrail.shell.model import Does, Effect, Piece, PieceKind, Word, literal_word
from handrail.shell.tables.git.preconditions import RELIED_ON

# Pretty formats of git (git-log(1), PRETTY FORMATS): built-in names and format strings of known placeholders.
#
# UnclearError: `%G...`, which checks signatures with the configured program, placeholders that are not listed, and a
# bare word that is not a built-in name, since it can be a `pretty.<name>` of the configuration that holds one.

BUILT_IN = frozenset("oneline short medium full fuller reference email mboxrd raw".split())
# After %: a line break, a byte, names of commits and trees, author and committer, texts, the reflog, colours, padding.
PLACEHOLDER = re.compile(
    r"""%(?:%|[-+\ ]?(?:  # behind a sign another % begins a placeholder
      [nmSesfbBNdDHhTtPp]
    | x[0-9A-Fa-f]{2}
    | [ac][nNeElLdDrtiIsh]
    | g[DdnNeEs]
    | C(?:red|green|blue|reset|\([^()%]*\))
    | w\([0-9, ]*\)
    | (?:<|<\||>|>\||>>|>>\||><)\([^()%]*\)
    | \((?:trailers|describe|decorate)(?::[^()]*)?\)
    ))""",
    re.VERBOSE,
)


def pretty(text: str) -> tuple[Effect, ...]:
    body = text.partition(":")[2] if text.startswith(("format:", "tformat:")) else text
    if body == text and text and "%" not in text and text not in BUILT_IN:
        raise UnclearError(f"{text!r} is not a built-in format")
    left = PLACEHOLDER.sub("", body)
    if "%G" in left or re.search("%[-+ ]G", left):
        raise UnclearError("%G checks signatures with the configured program")
    if "%" in left:
        raise UnclearError("a placeholder that is not listed")
    return ()


# Formats and sort keys of git branch, tag and for-each-ref (git-for-each-ref(1), FIELD NAMES).
#
# A closed list of fields: `%(signature)` and its kin check signatures with the configured program.

FIELDS = frozenset(
    """
    refname objecttype objectsize objectname deltabase upstream push symref flag worktreepath HEAD tree parent
    numparent object type tag author authorname authoremail authordate committer committername committeremail
    committerdate tagger taggername taggeremail taggerdate creator creatordate subject body trailers contents raw
    color align end if then else ahead-behind is-base describe version v
    """.split()
)
FIELD = re.compile(r"%\(\*?([A-Za-z-]+)((?::[^()]*)?)\)")
KEY = re.compile(r"-?(?:(?:version|v):)?\*?([A-Za-z-]+)(?::[A-Za-z0-9:=,_-]*)?\Z")


def ref_format(text: str) -> tuple[Effect, ...]:
    """A text with fields is a format; without, it must be a sort key."""
    names = [found.group(1) for found in FIELD.finditer(text)]
    key = KEY.match(text)
    if "%(" in FIELD.sub("", text):
        raise UnclearError("a field that is not read")
    if "%(" not in text:
        if key is None:
            raise UnclearError(f"{text!r} is no known field")
        names = [key.group(1)]
    if "remotename" in text:
        raise UnclearError("it may show the address of a remote, which may hold a password")
    for name in names:
        if name not in FIELDS:
            raise UnclearError(f"the field {name!r} is not listed")
    return ()


# The first word after `git reflog` when it is no listed sub-command: the name of a ref (git-reflog(1)).
#
# A word of small letters and dashes could be a sub-command of this or a newer git (expire, delete, drop, write), so
# only common branch names of that kind are taken for refs.

BRANCHES = frozenset("main master develop dev trunk staging stash".split())
SUBCOMMAND = re.compile(r"[a-z-]*\Z")


def reflog(text: str) -> tuple[Effect, ...]:
    if SUBCOMMAND.match(text) and text not in BRANCHES:
        raise UnclearError(f"{text!r} may be a sub-command that changes the reflog")
    return ()


# The value of `git log -L` (git-log(1)): `START,END:FILE` or `:FUNCTION:FILE`.
#
# Expressions in it may hold colons, so what stands behind any colon counts as the file.


def lines(text: str) -> tuple[Effect, ...]:
    parts = text.split(":")
    if len(parts) == 1:
        raise UnclearError("lines of no file")
    files = (":".join(parts[at:]) for at in range(1, len(parts)))
    return tuple(Effect(Does.READS, literal_word(file), "shows lines of this") for file in files if file)


# The name in `git config NAME` (git-config(1)): a section and a key with a dot between, or a pattern of names.
#
# A word without a dot may be a sub-command of newer versions (edit starts the editor), unless it names a section.

SECTIONS = frozenset(
    "advice alias branch color commit core credential diff fetch filter gc gpg grep http i18n init log merge pager "
    "protocol pull push rebase remote rerere safe status submodule tag url user".split()
)


def config_name(text: str) -> tuple[Effect, ...]:
    if re.match(r"[A-Za-z-]*\Z", text) and text not in SECTIONS:
        raise UnclearError(f"{text!r} is no name of a setting")
    return ()


# Settings given with `git -c NAME=VALUE` (git-config(1)) that can only make a command quieter or plainer.
#
# Any other setting may name a program, a file or a transport.

SWITCH = "(true|false|yes|no|on|off|0|1)?"
WORD = "[A-Za-z0-9,_.-]*"
SETTINGS = {
    # Nothing but how things look
    r"color\.[a-z.-]+": WORD + r"( [A-Za-z0-9# ]*)?",
    r"core\.(quotepath|precomposeunicode|ignorecase|preloadindex|filemode)": SWITCH,
    r"core\.abbrev": WORD,
    r"(column|advice)\.[a-z]+": WORD,
    r"diff\.(noprefix|mnemonicprefix|renames|renamelimit|algorithm|context|interhunkcontext|colormoved|wserrorhighlight"
    r"|indentheuristic|suppressblankempty|dirstat|statgraphwidth|relative)": WORD,
    r"log\.(date|decorate|abbrevcommit|follow|mailmap|showroot)": r"[A-Za-z0-9:%_. -]*",
    r"(log\.showsignature|core\.untrackedcache|core\.usebuiltinfsmonitor)": "(false|no|off|0|)",
    r"status\.(?!submodulesummary)[a-z]+": WORD,
    r"i18n\.logoutputencoding": WORD,
    r"grep\.(linenumber|column|patterntype|extendedregexp|fullname|threads)": WORD,
    r"blame\.(blankboundary|coloring|date|showemail|showroot)": WORD,
    # Switching helpers off
    r"core\.pager": "(cat|)",
    r"pager\.[a-z-]+": "(false|no|off|0|cat)",
    r"diff\.external": "",
    r"gc\.auto": "0",
    r"maintenance\.auto": "(false|0)",
    r"credential\.helper": "",
}
HARMLESS = re.compile("|".join(f"(?:{name}={value})" for name, value in SETTINGS.items()))


def setting(text: str) -> tuple[Effect, ...]:
    name, equals, value = text.partition("=")  # without "=" the setting is true
    if RELIED_ON.get(name.lower()) == value and equals:
        return ()
    if name.lower() in RELIED_ON or not HARMLESS.fullmatch(f"{name.lower()}{equals}{value}"):
        raise UnclearError(f"the setting {name!r} may make git run or read something else")
    return ()


# Operands of git: revisions and pathspecs (gitrevisions(7), gitglossary(7) "pathspec").
#
# Which of the two a word is depends on the repository, so every word counts as a path that is read, too. Neither can
# name a file outside the repository, except as a plain path (git diff compares any two files).
#
#     rev:path  :path  :2:path      a file of a commit or of the index
#     :(top,icase)path  :/path      a path with magic; `:/text` is also a search for a commit
#     :!path  :^path  :(exclude)p   left out, hence not read

MAGIC = frozenset(("top", "literal", "icase", "glob", "exclude"))
LONG = re.compile(r":\(([^()]*)\)")
SHORT = re.compile(r":([/!^]+):?")
STAGE = re.compile(r":(?:[0-3]:)?")


def pathspec(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    return tuple(effect for word in words or (literal_word("."),) for effect in one(word))


def one(word: Word) -> list[Effect]:
    text = word.literal
    if text is None:
        if ":" in word.prefix:
            raise UnclearError(f"{word} may be a pathspec with magic", word.start, word.end, "pathspec")
        return [reads(word)]
    if ":" not in text:
        return [reads(word)]
    if text.startswith(":"):
        path = magic(text, word)
        return [] if path is None else [reads(literal_word(path or ".", word.start, word.end))]
    return [reads(word), reads(literal_word(text.partition(":")[2] or ".", word.start, word.end))]


def reads(word: Word) -> Effect:
    return Effect(Does.READS, word, "shows this")


def magic(text: str, word: Word) -> str | None:
    """The path behind the magic, or None if it is left out."""
    if text.startswith(":("):
        found = LONG.match(text)
        names = found.group(1).split(",") if found else ["?"]
        if found is None or not all(name in MAGIC or name.startswith("attr:") or not name for name in names):
            raise UnclearError(f"{text!r} has magic that is not read", word.start, word.end, "pathspec")
        return None if "exclude" in names else text[found.end() :].lstrip("/" if "top" in names else "")
    if found := SHORT.match(text):
        return None if set("!^") & set(found.group(1)) else text[found.end() :].lstrip("/")
    stage = STAGE.match(text)
    return text[stage.end() :] if stage else text


# Operands of git clean: the folders from which everything that git does not know is removed.


def clean(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    rest = Piece(PieceKind.FOUND, "/{}", quoted=True, narrowed=True)
    found = [word._replace(pieces=(*word.pieces, rest)) for word in words or (literal_word("."),)]
    return tuple(Effect(Does.WRITES, word, "removes what git does not know", removes=True) for word in found)

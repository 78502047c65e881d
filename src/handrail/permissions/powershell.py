"""
Matches rules against PowerShell command lines: like Bash rules, without case, aliases read as cmdlet names.

PowerShell is not analysed like Bash. A line is split at command separators; deny and ask rules match any piece, and an
allow rule only a line that is one plain command.
"""

import re
from collections.abc import Iterable

from handrail.lazy import lazy_pattern
from handrail.permissions.rules import Behaviour, Rule
from handrail.permissions.shell import compile_shell
from handrail.permissions.wildcards import WORD_END, WildcardPattern

CMDLETS = {
    "add-content": "ac",
    "clear-content": "clc",
    "clear-item": "cli",
    "clear-itemproperty": "clp",
    "copy-item": "copy cp cpi",
    "foreach-object": "foreach %",
    "get-childitem": "dir gci ls",
    "get-content": "cat gc type",
    "get-item": "gi",
    "get-itemproperty": "gp",
    "get-location": "gl pwd",
    "get-member": "gm",
    "get-process": "gps ps",
    "get-service": "gsv",
    "invoke-command": "icm",
    "invoke-expression": "iex",
    "invoke-item": "ii",
    "invoke-restmethod": "irm",
    "invoke-webrequest": "curl iwr wget",
    "measure-object": "measure",
    "mkdir": "md",
    "move-item": "mi move mv",
    "new-item": "ni",
    "remove-item": "del erase rd ri rm rmdir",
    "rename-item": "ren rni",
    "select-object": "select",
    "select-string": "sls",
    "set-content": "sc",
    "set-item": "si",
    "set-itemproperty": "sp",
    "set-location": "cd chdir sl",
    "sort-object": "sort",
    "start-job": "sajb",
    "start-process": "saps start",
    "start-service": "sasv",
    "start-sleep": "sleep",
    "stop-process": "kill spps",
    "stop-service": "spsv",
    "tee-object": "tee",
    "where-object": "where ?",
    "write-output": "echo write",
}
ALIASES = {alias: name for name, aliases in CMDLETS.items() for alias in aliases.split()}
SEPARATORS = lazy_pattern(r"[;|&\n\r(){}]+|\$\(|@\(")
# Words, and quoted text in which nothing has a meaning.
PLAIN = lazy_pattern(r"""(?:[\w \t./\\:=,+%~*?-]|'[^'\n]*'|"[^"$`\n]*")+\Z""", re.ASCII)


def words_of(command: str, *, by_path: bool) -> list[str]:
    """The words, with the name of the cmdlet first. `by_path`: a program counts by its name wherever it lies."""
    text = re.sub(r"""(['"])(.*?)\1""", lambda found: found[2].replace(" ", "\x01"), command.replace("`", ""))
    words = [word.replace("\x01", " ").casefold() for word in text.split()]
    if by_path:
        while words and words[0] in (".", "&"):
            words = words[1:]
        words[:1] = [re.split(r"[\\/]", word)[-1].removesuffix(".exe") for word in words[:1]]
    words[:1] = [ALIASES.get(word, word) for word in words[:1]]
    return words


def pieces(command: str) -> list[str]:
    """Every command that the line may run, as rules are compared with it."""
    return [WORD_END.join(words) for piece in SEPARATORS.split(command) if (words := words_of(piece, by_path=True))]


MAX_SKIPPED = 8


def behind_options(words: list[str]) -> list[str]:
    """The suffixes of a shell's arguments that may be its program, after options and their values."""
    return [" ".join(words[at:]) for at in range(min(len(words), MAX_SKIPPED))]


def as_written(command: str) -> list[str]:
    """Every command that the line may run, spelled as in other shells, and what it may pass to one."""
    found = []
    for piece in SEPARATORS.split(command.replace("`", "")):
        words = [re.split(r"[\\/]", word)[-1] for word in piece.replace("'", " ").replace('"', " ").split()]
        found += [WORD_END.join(words[at:]) for at in range(min(len(words), MAX_SKIPPED))]
    return found


class PowerShellIndex:
    """The PowerShell rules of one behaviour."""

    __slots__ = ("rules",)

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = [(compile_powershell(rule.spec or ""), rule) for rule in rules]

    def find(self, command: str, behaviour: Behaviour) -> list[Rule]:
        """The rules that match a command line."""
        if not self.rules:
            return []
        if behaviour is Behaviour.ALLOW:
            plain = command.isascii() and PLAIN.match(command)
            texts = [WORD_END.join(words_of(command, by_path=False))] if plain else []
        else:
            texts = pieces(command)
        return [rule for pattern, rule in self.rules if any(map(pattern.matches, texts))]


def compile_powershell(spec: str) -> WildcardPattern:
    first, blank, rest = spec.casefold().partition(" ")
    head, colon, tail = first.partition(":*")
    return compile_shell(f"{ALIASES.get(head, head)}{colon}{tail}{blank}{rest}")

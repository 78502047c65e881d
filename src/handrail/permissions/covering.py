"""Whether a rule matches everything that another one matches, so that the other one says nothing new."""

from collections.abc import Iterable, Iterator

from handrail.permissions.rules import Rule
from handrail.permissions.shell import WORD_END, ShellPattern, compile_shell, cut

ANYTHING = "\x01"
"""Stands for text that only a wildcard can match."""
PATH_TOOLS = ("Read", "Edit")


class Covers:
    """Finds among many rules those that cover one; rules that cannot are not looked at."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._alike: dict[tuple[str, str], list[Rule]] = {}
        self._shell: dict[str, list[tuple[Rule, ShellPattern]]] = {}
        for rule in rules:
            if rule.spec is None:
                continue
            self._alike.setdefault((rule.tool, rule.spec), []).append(rule)
            if rule.tool == "Bash":
                pattern = compile_shell(rule.spec)
                self._shell.setdefault(_program(pattern), []).append((rule, pattern))

    def of(self, rule: Rule) -> Iterator[Rule]:
        """The others that match at least what this one matches."""
        if rule.spec is None:
            return
        if rule.tool != "Bash":
            yield from (
                other for other in self._alike[rule.tool, rule.spec] if other is not rule and _same_start(rule, other)
            )
            return
        texts = samples(rule.spec)
        program = _program(compile_shell(rule.spec))
        for other, pattern in (*self._shell.get(program, ()), *(self._shell.get("", ()) if program else ())):
            if other is not rule and all(_matches(pattern, text) for text in texts):
                yield other


def samples(spec: str) -> list[str]:
    """
    Texts such that a pattern that matches them all matches whatever the spec does.

    A wildcard becomes a sign that no rule holds, so only a wildcard can match it.
    """
    if spec.endswith(":*"):
        spec = spec[:-2] + " *"
    text = "".join(ANYTHING if piece is None else piece for piece in cut(spec))
    tail = WORD_END + ANYTHING
    return [text, text.removesuffix(tail)] if text.endswith(tail) else [text]


def _program(pattern: ShellPattern) -> str:
    """The first word that every match begins with; empty if a wildcard is part of it."""
    first, mark, _ = pattern.literal.partition(WORD_END)
    ends = mark or pattern.regex is None or pattern.regex.fullmatch(first + ANYTHING) is None
    return first if ends else ""


def _matches(pattern: ShellPattern, text: str) -> bool:
    return text == pattern.literal if pattern.regex is None else pattern.regex.fullmatch(text) is not None


def _same_start(one: Rule, other: Rule) -> bool:
    """Whether both specs mean the same place: `/src` starts from the folder of its settings."""
    spec = one.spec or ""
    anchored = one.tool in PATH_TOOLS and spec.startswith("/") and not spec.startswith("//")
    return not anchored or one.source.folder == other.source.folder

"""Finds rules that match everything another rule matches, which makes that other rule redundant."""

from collections import Counter
from collections.abc import Iterable, Iterator

from handrail.permissions.rules import BASH, EDIT, READ, Behaviour, Rule
from handrail.permissions.shell import compile_shell, cut
from handrail.permissions.wildcards import WORD_END, WildcardPattern

ANYTHING = "\x01"
"""Stands for text that only a wildcard can match."""


class RuleCover:
    """Finds the rules that cover a rule, by the rarest literal text of their patterns: what they cover contains it."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._alike: dict[tuple[str, str], dict[tuple[Behaviour, str], Rule]] = {}
        for rule in rules:
            if rule.spec is not None:
                self._alike.setdefault((rule.tool, rule.spec), {}).setdefault((rule.behaviour, _start(rule)), rule)
        specs = [spec for tool, spec in self._alike if tool == BASH]
        texts = {spec: [piece for piece in cut(spec) if piece] for spec in specs}
        common = Counter(text for each in texts.values() for text in dict.fromkeys(each))
        self._filed: dict[int, dict[str, list[tuple[str, WildcardPattern]]]] = {}
        for spec, each in texts.items():
            rarest = min(each, key=lambda text: (common[text], -len(text)), default="").rstrip(WORD_END)
            self._filed.setdefault(len(rarest), {}).setdefault(rarest, []).append((spec, compile_shell(spec)))

    def of(self, rule: Rule) -> Iterator[Rule]:
        """The other rules that match at least what this one matches."""
        if rule.spec is None:
            return
        if rule.tool != BASH:
            same = self._alike[rule.tool, rule.spec].items()
            yield from (other for (_, start), other in same if other is not rule and start == _start(rule))
            return
        texts = samples(rule.spec)
        for spec, pattern in self._holding(min(texts, key=len)):
            if all(map(pattern.matches, texts)):
                yield from (other for other in self._alike[BASH, spec].values() if other is not rule)

    def _holding(self, text: str) -> Iterator[tuple[str, WildcardPattern]]:
        """The patterns whose indexed text is part of this text."""
        for length, filed in self._filed.items():
            if len(filed) < len(text) - length:
                yield from (each for part, patterns in filed.items() if part in text for each in patterns)
                continue
            for part in {text[at : at + length] for at in range(len(text) - length + 1)}:
                yield from filed.get(part, ())


def samples(spec: str) -> list[str]:
    """Texts that stand for a spec: a wildcard becomes a character that no rule contains, which only wildcards match."""
    text = "".join(ANYTHING if piece is None else piece for piece in cut(spec))
    tail = WORD_END + ANYTHING
    return [text, text.removesuffix(tail)] if text.endswith(tail) else [text]


def _start(rule: Rule) -> str:
    """The folder that a spec such as `/src` starts from; empty for other specs."""
    spec = rule.spec or ""
    anchored = rule.tool in (READ, EDIT) and spec.startswith("/") and not spec.startswith("//")
    return rule.source.folder if anchored else ""

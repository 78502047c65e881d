"""The rules of all settings files and flags, and what is wrong with them. It loads little, for every start needs it."""

from collections.abc import Iterable, Sequence
from dataclasses import astuple

from handrail.config.flags import SettingsFlags
from handrail.config.places import SettingsPlaces
from handrail.permissions.mistakes import narrowing_mistakes
from handrail.permissions.rules import Behaviour, Rule, RuleProblem, RuleSource, parse_rule, split_rules
from handrail.permissions.tool_index import ToolIndex
from handrail.session.settings.caller_names import NO_NAMES, CallerNames
from handrail.session.settings.load import LoadedSettings
from handrail.session.settings.rule_problems import settings_problems, source_of


def rules_and_problems(
    loaded: LoadedSettings, flags: SettingsFlags, places: SettingsPlaces, names: CallerNames = NO_NAMES
) -> list[Rule | RuleProblem]:
    """All rules, and everything that was meant to forbid and cannot."""
    rules = _rules(loaded, flags, places)
    return [*rules, *narrowing_mistakes(rules, names.tools), *settings_problems(loaded, places, names)]


def tool_denials(texts: Iterable[str], flags: SettingsFlags) -> ToolIndex:
    """The deny rules about whole tools, of these texts and of the flags."""
    given = (*texts, *(text for word in flags.disallowed for text in split_rules(word)))
    rules = (parse_rule(text, Behaviour.DENY) for text in given)
    return ToolIndex(Behaviour.DENY, (rule for rule in rules if isinstance(rule, Rule) and rule.spec is None))


def _rules(loaded: LoadedSettings, flags: SettingsFlags, places: SettingsPlaces) -> list[Rule | RuleProblem]:
    found: list[Rule | RuleProblem] = []
    managed_only = loaded.managed_rules_only
    for layer in loaded.settings.layers:
        section = layer.values.get("permissions", {})
        for kind in Behaviour:
            if kind is Behaviour.ALLOW and managed_only and layer.source != "policy":
                continue
            texts = section.get(kind.value, ())
            lines = layer.document.lines(("permissions", kind.value)) if texts else []
            lines += [0] * (len(texts) - len(lines))
            name, file, _, folder, above = astuple(source_of(layer, places))
            found += [
                parse_rule(text, kind, RuleSource(name, file, line, folder, above))
                for text, line in zip(texts, lines, strict=False)
            ]
    given: list[tuple[Behaviour, Sequence[str]]] = [(Behaviour.DENY, flags.disallowed), (Behaviour.ASK, flags.ask)]
    if flags.flags_widen and not managed_only and not loaded.settings.doubtful:
        given.append((Behaviour.ALLOW, flags.allowed))
    above = flags.root not in ("", places.cwd)
    source = RuleSource(flags.rules_from, folder=flags.root if above else "", above=above)
    for kind, words in given:
        found += [parse_rule(text, kind, source) for word in words for text in split_rules(word)]
    return found

"""The policy that settings make, with all it needs of the permission language. Loaded with the first decision."""

import os
from collections.abc import Callable, Iterable, Sequence

from handrail.config.flags import SettingsFlags
from handrail.config.places import SettingsPlaces
from handrail.config.snapshot import Settings
from handrail.dispatch.approval.live import LivePolicy
from handrail.files.search_path import program_folders
from handrail.permissions.hidden_files import hidden_file_check
from handrail.permissions.policy import ModeAvailability, Policy
from handrail.permissions.rules import Behaviour, Rule, RuleProblem, RuleSource, parse_rule, split_rules
from handrail.session.load_settings import LoadedSettings
from handrail.session.rule_writer import GoverningSettings, RuleWriter


def live_policy(base: Callable[[], Policy], settings: GoverningSettings, *, writes: bool) -> LivePolicy:
    """The policy in force. Without `writes`, what a person agrees to holds for the session and is written nowhere."""
    return LivePolicy(base, RuleWriter(settings) if writes else None)


def build_policy(
    loaded: LoadedSettings, given: SettingsFlags, places: SettingsPlaces, scripts: Iterable[str]
) -> Policy:
    """The rules of all sources, the mode and the folders in one snapshot; programs and `scripts` are protected."""
    modes = ModeAvailability(bypass_available=loaded.mode.bypass_available, auto_available=loaded.mode.auto_available)
    empty = Policy.empty(places.cwd, places.home).with_availability(modes).with_mode(loaded.mode.name)
    programs = program_folders(loaded.env.get("PATH", ""), loaded.folders)
    own = (*map(os.path.realpath, (places.state, places.user, places.claude)), *scripts, *programs)
    return empty.with_directories(loaded.folders).with_own(own).with_rules(_rules(loaded, given))


def _rules(loaded: LoadedSettings, flags: SettingsFlags) -> list[Rule | RuleProblem]:
    found: list[Rule | RuleProblem] = []
    managed_only = loaded.managed_rules_only
    for layer in loaded.settings.layers:
        file, section = layer.document.file, layer.values.get("permissions", {})
        for kind in Behaviour:
            if kind is Behaviour.ALLOW and managed_only and layer.source != "policy":
                continue
            texts = section.get(kind.value, ())
            lines = layer.document.lines(("permissions", kind.value)) if texts else []
            lines += [0] * (len(texts) - len(lines))
            found += [
                parse_rule(text, kind, RuleSource(layer.source, file.shown, line, file.folder))
                for text, line in zip(texts, lines, strict=False)
            ]
    given: list[tuple[Behaviour, Sequence[str]]] = [(Behaviour.DENY, flags.disallowed), (Behaviour.ASK, flags.ask)]
    if flags.flags_widen and not managed_only and not loaded.settings.doubtful:
        given.append((Behaviour.ALLOW, flags.allowed))
    for kind, words in given:
        found += [parse_rule(text, kind, RuleSource("cli")) for word in words for text in split_rules(word)]
    return found


def rule_note(problem: RuleProblem, settings: Settings) -> str:
    """What is wrong with a rule, where: `settings.json:12: permissions.allow[2] is 'Bash(' - ...`."""
    source = problem.source
    for layer in settings.layers:
        section = layer.values.get("permissions", {}) if layer.document.file.shown == source.file else {}
        for kind in ("deny", "ask", "allow"):
            if problem.text in section.get(kind, ()):
                at = section[kind].index(problem.text)
                what = f"permissions.{kind}[{at}] is {problem.text!r} - {problem.message}. It matches nothing."
                return f"{source.file}:{source.line}: {what}"
    return f"{source}: {problem.text!r} - {problem.message}. It matches nothing."


def hidden_files(policy: Callable[[], Policy]) -> Callable[[str], bool]:
    """Whether a search leaves out the file at a real path, by the policy in force."""
    known: list[tuple[Policy, Callable[[str], bool]]] = []

    def is_hidden(path: str) -> bool:
        now = policy()
        if not known or known[0][0] is not now:
            known[:] = [(now, hidden_file_check(now))]
        return known[0][1](path)

    return is_hidden

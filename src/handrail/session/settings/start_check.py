"""
Checks the rules and hooks of settings at the start of a session, cheaply: what was found is kept by content.

Nothing depends on what is kept but the messages: the policy finds out by itself what cannot work.
"""

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from handrail import __version__
from handrail.config.files import own_bytes, replace_file
from handrail.config.flags import SettingsFlags
from handrail.config.places import SettingsPlaces
from handrail.files.private_folder import make_private_folder
from handrail.lazy import lazy
from handrail.records import record
from handrail.session.settings.caller_names import CallerNames
from handrail.session.settings.load import LoadedSettings

if TYPE_CHECKING:
    from handrail.permissions import lint, mistakes, rules
    from handrail.permissions.policy import Policy
    from handrail.session.settings import rule_problems
    from handrail.session.settings import rules as settings_rules
else:  # loaded for settings that were not checked before
    lint = lazy("handrail.permissions.lint")
    mistakes = lazy("handrail.permissions.mistakes")
    rules = lazy("handrail.permissions.rules")
    rule_problems = lazy("handrail.session.settings.rule_problems")
    settings_rules = lazy("handrail.session.settings.rules")

FORMAT, MAX_BYTES = 2, 1_000_000
MAX_LINTED = 2_000
"""With more rules than this, only `handrail permissions lint` looks for wide and redundant ones."""


@record
class StartCheck:
    """What is wrong with the rules and hooks of a session. `remarks_due`: its wide rules were not reported before."""

    notes: tuple[str, ...] = ()
    remarks_due: bool = False


def check_rules(
    loaded: LoadedSettings, flags: SettingsFlags, places: SettingsPlaces, names: CallerNames, *, keep: bool
) -> StartCheck:
    """Everything that was meant to forbid and cannot, and allow rules without effect; `keep` spares the next start."""
    scripts = tuple(rule_problems.script_notes(loaded, places)) if loaded.hooks else ()
    if not keep or not loaded.settings.layers:
        return StartCheck((*_find(loaded, flags, places, names), *scripts))
    key = _key(loaded, flags, places, names)
    kept = _read_check(_file(places), key)
    if kept is not None:
        return StartCheck((*kept.notes, *scripts), remarks_due=kept.remarks_due)
    found = StartCheck(_find(loaded, flags, places, names), remarks_due=True)
    _keep(_file(places), key, found)
    return StartCheck((*found.notes, *scripts), remarks_due=True)


def keep_told(loaded: LoadedSettings, flags: SettingsFlags, places: SettingsPlaces, names: CallerNames) -> None:
    """Remember that the wide rules of this content were told of. Many a session ends before its rules are loaded."""
    key = _key(loaded, flags, places, names)
    kept = _read_check(_file(places), key)
    if kept is not None:
        _keep(_file(places), key, StartCheck(kept.notes))


def _file(places: SettingsPlaces) -> Path:
    return places.state / "lint" / places.trust_file.name


def remarks_note(policy: "Policy", names: CallerNames) -> str:
    """One line about allow rules that are wider than they look, for content that was not checked before."""
    if len(policy.rules) > MAX_LINTED:
        return ""
    wide = [found for found in lint.lint(policy, names.tools) if found.kind == "wide"]
    if not wide:
        return ""
    shown = ", ".join(found.rule for found in wide[:3]) + (" ..." if len(wide) > 3 else "")
    seem = "allows more than it seems to" if len(wide) == 1 else "allow more than they seem to"
    given = next((found for found in wide if not found.source.file), None)  # lint does not see the rules of flags
    return f"{shown} {seem}. {f'{given.rule}: {given.message}' if given else 'See: handrail permissions lint'}"


def _find(loaded: LoadedSettings, flags: SettingsFlags, places: SettingsPlaces, names: CallerNames) -> tuple[str, ...]:
    found = settings_rules.rules_and_problems(loaded, flags, places, names)
    wrong = [each for each in found if isinstance(each, rules.RuleProblem)]
    allowing = [each for each in found if isinstance(each, rules.Rule) and each.behaviour is rules.Behaviour.ALLOW]
    wrong += [each for rule in allowing for each in mistakes.mistakes(rule, names.tools)]
    return tuple(rule_problems.notes_of(wrong, loaded.settings))


def _key(loaded: LoadedSettings, flags: SettingsFlags, places: SettingsPlaces, names: CallerNames) -> str:
    """A digest of everything that the check depends on."""
    settings = loaded.settings
    files = [[layer.source, layer.document.file.shown, layer.document.text, layer.kept] for layer in settings.layers]
    given = [flags.allowed, flags.ask, flags.disallowed, flags.wideners, sorted(names.tools), names.matchers]
    about = [__version__, places.cwd, files, dict(settings.trust_by_folder), loaded.managed_rules_only, given]
    return hashlib.sha256(json.dumps(about).encode("utf-8", "surrogatepass")).hexdigest()


def _read_check(file: Path, key: str) -> StartCheck | None:
    try:
        content = json.loads(own_bytes(file, MAX_BYTES))
        if content["version"] == FORMAT and content["key"] == key:
            return StartCheck(tuple(map(str, content["notes"])), bool(content["remarksDue"]))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _keep(file: Path, key: str, found: StartCheck) -> None:
    content = json.dumps({"version": FORMAT, "key": key, "notes": found.notes, "remarksDue": found.remarks_due})
    try:
        make_private_folder(file.parent)
        replace_file(file, content.encode("utf-8", "surrogatepass"), mode=0o600)
    except OSError:
        return  # it is checked again next time

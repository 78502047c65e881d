"""The policy that settings make, with all it needs of the permission language. Loaded with the first decision."""

import os
from collections.abc import Callable, Iterable

from handrail.config.flags import SettingsFlags
from handrail.config.places import SettingsPlaces
from handrail.dispatch.approval.live import LivePolicy
from handrail.files.search_path import program_folders
from handrail.permissions.hidden_files import files_hidden_by
from handrail.permissions.policy import ModeAvailability, Policy
from handrail.session.settings.caller_names import NO_NAMES, CallerNames
from handrail.session.settings.git_files import git_files
from handrail.session.settings.load import LoadedSettings
from handrail.session.settings.rule_writer import GoverningSettings, RuleWriter
from handrail.session.settings.rules import rules_and_problems
from handrail.tools.hidden_files import HiddenFiles


def live_policy(base: Callable[[], Policy], settings: GoverningSettings, *, writes: bool) -> LivePolicy:
    """The policy in force. Without `writes`, what a person agrees to holds for the session and is written nowhere."""
    return LivePolicy(base, RuleWriter(settings) if writes else None)


def build_policy(
    loaded: LoadedSettings,
    given: SettingsFlags,
    places: SettingsPlaces,
    scripts: Iterable[str],
    names: CallerNames = NO_NAMES,
) -> Policy:
    """The rules of all sources, the mode and the folders in one snapshot; what runs without a call is protected."""
    modes = ModeAvailability(bypass_available=loaded.mode.bypass_available, auto_available=loaded.mode.auto_available)
    empty = Policy.empty(places.cwd, places.home).with_availability(modes).with_mode(loaded.mode.name)
    programs = program_folders(loaded.env.get("PATH", ""), loaded.folders)
    of_git = git_files(loaded.folders, str(places.home))
    records = (*map(str, (places.state, places.user, places.claude)), *of_git.places, *of_git.missing)
    own = (*map(os.path.realpath, records), *scripts, *programs)
    rules = rules_and_problems(loaded, given, places, names)
    files = [file.shown for file in loaded.settings.settings_files]
    named = empty.with_tool_names(names.tools).with_files(files)
    return named.with_directories(loaded.folders).with_own(own).with_rules(rules)


def hidden_files(in_force: Callable[[], LivePolicy]) -> Callable[[], HiddenFiles]:
    """What a search leaves out by the policy that judged its call: the settings files are not looked at again."""
    known: list[tuple[Policy, HiddenFiles]] = []

    def hidden_now() -> HiddenFiles:
        now = in_force().last
        if not known or known[0][0] is not now:
            known[:] = [(now, files_hidden_by(now))]
        return known[0][1]

    return hidden_now

"""The gate of a folder without settings files, for benchmarks that drive the executor themselves."""

from collections.abc import Mapping
from pathlib import Path

from handrail.config.flags import SettingsFlags
from handrail.dispatch.approval.gate import PolicyGate
from handrail.session.gate import open_gate
from handrail.session.redactor import redactor_for
from handrail.session.settings.session_settings import open_settings
from handrail.session.state_folder import state_folder

NO_FILES = SettingsFlags(sources=(), managed_policy=False)


def folder_gate(folder: Path, env: Mapping[str, str]) -> PolicyGate:
    """What lies in the folder may be read, the rest is refused, and every decision is audited."""
    settings = open_settings(folder, env, state_folder(env), NO_FILES, print)
    return open_gate(settings, redactor=redactor_for(env))

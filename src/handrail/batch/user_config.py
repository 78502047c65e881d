"""
The hash of the user's own configuration, as far as it changes what a run does.

    settings      of the user and of policy, and their MCP servers; not what only changes how a terminal looks
    instructions  the user's memory files with what they import, agents, commands, skills and output styles
    plugins       those that were added, by their content
    variables     that choose models, their server, or how handrail works

A result that was made under another configuration is not reused.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from handrail.batch.working_copy import tree_digest
from handrail.config.flags import SettingsFlags
from handrail.config.keys import KEYS
from handrail.config.load import load_settings
from handrail.config.places import places_for
from handrail.config.plugin_store import PluginStore
from handrail.extensions.places import SKILL_FAMILIES, config_folders
from handrail.session.context.memory_files import Switches, places, read_memory
from handrail.session.state_folder import state_folder

NOT_OF_RUNS = frozenset(
    ("$schema", "statusLine", "theme", "editorMode", "notifications", "sdkSessionCopy", "cleanupPeriodDays")
)
SETTINGS = frozenset(key.path[0] for key in KEYS if key.has_effect) - NOT_OF_RUNS
KINDS = ("agents", "commands", "skills", "output-styles")
MODEL_VARIABLES = frozenset(
    ("ANTHROPIC_MODEL", "ANTHROPIC_BASE_URL", "OPENAI_MODEL", "OPENAI_BASE_URL", "CLAUDE_CODE_SUBAGENT_MODEL")
)
PREFIXES = ("HANDRAIL_", "ANTHROPIC_DEFAULT_")
LEFT_OUT = ("_DIR", "_FILE", "_RG", "_TOKEN")
"""How variables end that say where things lie on this machine, or are secrets."""


def user_config_digest(env: Mapping[str, str]) -> str:
    """The hash of it all; HandrailError if policy or the record of plugins cannot be read."""
    here, state = Path(tempfile.gettempdir()), state_folder(env)
    settings = load_settings(places_for(here, env, state), env, SettingsFlags(sources=("user",)))
    values = {name: value for name, value in settings.values.items() if name in SETTINGS}
    excludes = tuple(settings.values.get("claudeMdExcludes") or ())
    memory = read_memory(places(here, env), Switches(excludes=excludes, project=False, local=False))
    plugins = PluginStore(state).load().plugins
    defines: Mapping[str, Any] = {
        "settings": values,
        "unreadable": settings.doubtful,
        "servers": dict(settings.servers),
        "memory": [(file.text, file.patterns) for file in (*memory.files, *memory.waiting)],
        "definitions": [*_definitions(here, env)],
        "plugins": {name: plugin.digest for name, plugin in plugins.items()},
        "variables": run_variables(env),
    }
    return hashlib.sha256(json.dumps(defines, sort_keys=True).encode()).hexdigest()


def _definitions(here: Path, env: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for folder in config_folders(here, env, ("user",), SKILL_FAMILIES):
        for kind in KINDS:
            holder = folder.path / kind
            for name in sorted(os.listdir(holder)) if holder.is_dir() else ():  # noqa: PTH208
                yield kind, name, _definition_digest(holder / name)


def _definition_digest(path: Path) -> str:
    """The hash of a file or folder, also behind a link; empty for one that runs cannot read either."""
    try:
        return tree_digest(os.path.realpath(path))
    except OSError:
        return ""


def run_variables(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that choose models, their server, or how handrail works; no keys."""
    names = (name for name in env if name in MODEL_VARIABLES or name.startswith(PREFIXES))
    return {name: env[name] for name in names if not name.endswith(LEFT_OUT)}

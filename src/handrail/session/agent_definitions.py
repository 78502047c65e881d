"""The definitions of sub-agents that hold in a folder: given by a program, read from files, or built in."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.agents.definitions import (
    BUILT_IN,
    AgentDefinition,
    is_built_in,
    parse_definition,
    parse_json,
    unused_fields,
)
from handrail.config.snapshot import TRUSTED
from handrail.extensions.definition_files import DefinitionFile, read_definitions
from handrail.extensions.places import SOURCES, ConfigFolder, config_folders
from handrail.lazy import lazy
from handrail.session.session_settings import SessionSettings

if TYPE_CHECKING:
    from handrail.config import needs_trust
else:
    needs_trust = lazy("handrail.config.needs_trust")


def find_agents(
    cwd: Path,
    env: Mapping[str, str],
    given: Mapping[str, Any],
    sources: Collection[str] = SOURCES,
    may_replace: Callable[[DefinitionFile], bool] = lambda _file: False,
) -> tuple[dict[str, AgentDefinition], list[str]]:
    """
    All sub-agents that hold in a folder, by name, and why others do not. What a program gives goes before files.

    A project's file takes the place of a built-in agent only if `may_replace` says so.
    """
    found: dict[str, AgentDefinition] = {}
    problems: list[str] = []
    candidates = [parse_json(name, value, "--agents") for name, value in given.items()]
    for each in (*candidates, *_files(config_folders(cwd, env, sources), may_replace), *BUILT_IN):
        if isinstance(each, str):
            problems.append(each)
        else:
            found.setdefault(each.name, each)
    for agent in found.values():
        if wrong := agent.misspelt_limits() if agent.disallowed else {}:
            names, tools = ", ".join(map(repr, dict.fromkeys(wrong.values()))), ", ".join(wrong)
            problems.append(
                f"{agent.source}: the agent {agent.name!r} disallows {names}, which is no tool; it has no {tools}"
            )
    return found, problems


def is_trusted_agent(settings: SessionSettings, file: DefinitionFile) -> bool:
    """Whether a project's file may take the place of a built-in agent: it is what was trusted."""
    loaded = settings.loaded.settings
    items = needs_trust.agent_items((file,), settings.places.folders)
    return all(item in loaded.items and loaded.trust_by_folder.get(item.folder) == TRUSTED for item in items)


def _files(
    folders: Iterable[ConfigFolder], may_replace: Callable[[DefinitionFile], bool]
) -> Iterator[AgentDefinition | str]:
    for folder in folders:
        for file in read_definitions(folder, "agents"):
            if not isinstance(file, DefinitionFile):
                yield str(file)
                continue
            name = file.content.text("name")
            if file.source == "project" and is_built_in(name) and not may_replace(file):
                yield f"{file.shown}: it does not replace the built-in agent {name!r} before this folder is trusted"
                continue
            yield parse_definition(file.content, str(file.path))
            if fields := unused_fields(file.content):
                yield f"{file.shown}: no effect yet: {', '.join(fields)}"

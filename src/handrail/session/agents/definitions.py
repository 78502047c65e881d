"""
The definitions of sub-agents that hold in a folder: the policy's, given by a program, read from files, or built in.

Of two of one name the policy's counts, then that of `--agents` and the SDK, the project's (the nearest), the user's, a
plugin's, and the built-in one. What a project's file runs, connects to or keeps counts only if it was trusted.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.agents.definitions import (
    BUILT_IN,
    NOT_FOR_PLUGINS,
    AgentDefinition,
    definition_notes,
    is_built_in,
    parse_definition,
    parse_json,
    unused_fields,
    values_to_trust,
)
from handrail.config.snapshot import TRUSTED
from handrail.extensions.definition_files import DefinitionFile, definition_marks, read_definitions
from handrail.extensions.places import SOURCES, ConfigFolder, config_folders
from handrail.lazy import lazy
from handrail.session.settings.load import NEXT_MOVE
from handrail.session.settings.session_settings import SessionSettings

if TYPE_CHECKING:
    from handrail.config import needs_trust
else:
    needs_trust = lazy("handrail.config.needs_trust")

IsTrusted = Callable[[DefinitionFile], bool]


def trust_no_file(_file: DefinitionFile) -> bool:
    """Where it is not known what was trusted."""
    return False


def find_agents(
    cwd: Path,
    env: Mapping[str, str],
    given: Mapping[str, Any],
    sources: Collection[str] = SOURCES,
    *,
    is_trusted: IsTrusted = trust_no_file,
    more: Sequence[ConfigFolder] = (),
    tools: Collection[str] = (),
) -> tuple[dict[str, AgentDefinition], list[str]]:
    """
    All sub-agents that hold in a folder, by name, and what a person should know about them and about broken ones.

    `more` are the folders of the policy and of plugins. `is_trusted` says whether a project's file is as trusted.
    `tools` are the names of the program's own tools.
    """
    policy = [folder for folder in more if folder.source == "policy"]
    others = [*config_folders(cwd, env, sources), *(folder for folder in more if folder.source != "policy")]
    found: dict[str, AgentDefinition] = {}
    problems: list[str] = []
    candidates = (parse_json(name, value, "--agents") for name, value in given.items())
    for each in (*_files(policy, is_trusted), *candidates, *_files(others, is_trusted), *BUILT_IN):
        if isinstance(each, str):
            problems.append(each)
        elif found.setdefault(each.name, each) is each and each.origin != "built-in":
            problems += (f"{each.source}: {note}" for note in definition_notes(each, tools))
    return found, problems


def session_agents(
    cwd: Path,
    env: Mapping[str, str],
    given: Mapping[str, Any],
    settings: SessionSettings,
    plugins: Sequence[ConfigFolder] = (),
) -> tuple[dict[str, AgentDefinition], list[str]]:
    """All sub-agents of a session with these settings."""
    policy = [ConfigFolder(folder, "policy", str(folder)) for folder in settings.places.policy]
    sources = settings.flags.instruction_sources
    is_trusted = partial(is_trusted_agent, settings)
    return find_agents(
        cwd, env, given, sources, is_trusted=is_trusted, more=(*policy, *plugins), tools=settings.names.tools
    )


class LiveDefinitions:
    """The definitions that hold in a session. Files that changed count after `look_again`."""

    def __init__(
        self,
        find: Callable[[], tuple[Mapping[str, AgentDefinition], Sequence[str]]],
        folders: Callable[[], Iterable[ConfigFolder]],
        settings: SessionSettings,
        on_warning: Callable[[str], None],
    ) -> None:
        self._find = find
        self._folders = folders
        self._settings = settings
        self._on_warning = on_warning
        self._found: Mapping[str, AgentDefinition] | None = None
        self._mark: object = None
        self._told: frozenset[str] = frozenset()

    def __call__(self) -> Mapping[str, AgentDefinition]:
        if self._found is None:
            self._mark = self._look()
            self._found, problems = self._find()
            for problem in problems:
                if problem not in self._told:
                    self._on_warning(problem)
            self._told = frozenset(problems)
        return self._found

    def look_again(self) -> None:
        """Read them again when they are next asked for, if a file, a plugin or the settings changed."""
        if self._found is not None and self._look() != self._mark:
            self._found = None

    def _look(self) -> object:
        files = [file for folder in self._folders() for file in definition_marks(folder, "agents")]
        return self._settings.loaded, files


def is_trusted_agent(settings: SessionSettings, file: DefinitionFile) -> bool:
    """Whether what a project's file runs, keeps or replaces counts: it is what was trusted."""
    loaded = settings.loaded.settings
    folders = settings.places.folders
    items = needs_trust.agent_items((file,), folders)
    if not items:
        return settings.is_trusted(needs_trust.folder_of(str(file.path), folders))
    return all(item in loaded.items and loaded.trust_by_folder.get(item.folder) == TRUSTED for item in items)


def _files(folders: Iterable[ConfigFolder], is_trusted: IsTrusted) -> Iterator[AgentDefinition | str]:
    files = [(file, folder) for folder in folders for file in read_definitions(folder, "agents")]
    read = [file for file, _folder in files if isinstance(file, DefinitionFile)]
    own = {file.content.text("name") for file in read if file.source == "user"}
    for file, folder in files:
        if isinstance(file, DefinitionFile):
            yield from _definition(file, folder, is_trusted, own)
        else:
            yield str(file)


def _definition(
    file: DefinitionFile, folder: ConfigFolder, is_trusted: IsTrusted, own: Collection[str]
) -> Iterator[AgentDefinition | str]:
    """The definition in a file; `own` are the names of the user's agents, with limits that a project must not lift."""
    head, name = file.content, file.content.text("name")
    replaces = f"the built-in agent {name!r}" if is_built_in(name) else f"your agent {name!r}" if name in own else ""
    left_out = [*values_to_trust(head, file.text)] if file.source == "project" else []
    may_count = file.source != "project" or not (left_out or replaces) or is_trusted(file)
    if not may_count and replaces:
        yield f"{file.shown}: it does not replace {replaces} before this folder is trusted"
        return
    if folder.plugin:
        head = replace(head, values={**head.values, "name": folder.full_name(name) if name else ""})
        left_out = [field for field in NOT_FOR_PLUGINS if field in head.values]
        head = replace(head, values={key: value for key, value in head.values.items() if key not in left_out})
        yield from (f"{file.shown}: no effect in a plugin: {field}" for field in left_out)
    found = parse_definition(head, str(file.path), file.text, origin=file.source)
    if not may_count and isinstance(found, AgentDefinition):
        found = replace(found, hooks={}, memory="", servers=_only_names(found))
        yield f"{file.shown}: without effect before this folder is trusted: {', '.join(left_out)}. {NEXT_MOVE}"
    yield found
    if fields := unused_fields(head):
        yield f"{file.shown}: no effect: {fields}"


def _only_names(agent: AgentDefinition) -> dict[str, None]:
    """The servers that the session has anyway; a name starts nothing."""
    return {name: None for name, entry in agent.servers.items() if entry is None}


def public_source(definition: AgentDefinition, cwd: Path, env: Mapping[str, str]) -> str:
    """Where a definition comes from, in the words that programs know."""
    known = {"built-in": "built-in", "--agents": "flagSettings"}
    users = config_folders(cwd, env, ("user",))
    is_users = any(Path(definition.source).is_relative_to(folder.path) for folder in users)
    return known.get(definition.source, "userSettings" if is_users else "projectSettings")

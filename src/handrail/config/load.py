"""
Loads the settings of one folder: reads the files, applies trust and merges the values.

Nothing here widens by accident. Project settings that are not known to narrow wait for trust. A file that cannot be
read may contain deny rules: while there is one, no rule allows, no folder is added and no mode is wider than default.
If the file could be read before, what it forbade then still counts. Policy that cannot be read ends the program.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.config.document import SettingsDocument, document_of, read_document
from handrail.config.flags import SettingsFlags, Wideners
from handrail.config.keys import KEYS
from handrail.config.managed import PolicySource, read_policy
from handrail.config.mcp_files import WrittenServer, read_servers
from handrail.config.merge import merge_values
from handrail.config.places import INLINE, SettingsFile, SettingsPlaces
from handrail.config.problems import Problem
from handrail.config.snapshot import CHANGED, TRUSTED, UNTRUSTED, Layer, Settings
from handrail.config.unused_keys import unused_note
from handrail.errors import SettingsError
from handrail.extensions.places import FAMILIES, SKILL_FAMILIES, config_folders
from handrail.lazy import lazy
from handrail.permissions.modes import stricter

if TYPE_CHECKING:
    from handrail.config import needs_trust, trust
    from handrail.extensions import commands as command_files
    from handrail.extensions import definition_files
    from handrail.extensions import skills as skill_files
    from handrail.extensions.commands import CommandFile
else:  # only folders with their own settings need them
    command_files = lazy("handrail.extensions.commands")
    definition_files = lazy("handrail.extensions.definition_files")
    skill_files = lazy("handrail.extensions.skills")
    needs_trust = lazy("handrail.config.needs_trust")
    trust = lazy("handrail.config.trust")

MANAGED_ONLY = tuple(key.name for key in KEYS if key.managed)
OWN_LIMITS = ("redact", "allowedMcpServers")
LIMITS = (*OWN_LIMITS, "allowedHttpHookUrls", "httpHookAllowedEnvVars", "availableModels")
"""What limits only while it is there: it waits for trust in a project, and what breaks must not lift it."""


def load_settings(
    places: SettingsPlaces,
    env: Mapping[str, str],
    flags: SettingsFlags,
    *,
    policies: Iterable[PolicySource] = (),
    before: Settings | None = None,
    frozen_sources: frozenset[str] = frozenset(),
) -> Settings:
    """
    The settings in force. When a session reloads them, `before` holds those in force until now; the files of
    `frozen_sources` are not read again.

    Raises:
        SettingsError: policy or the settings of the command line cannot be used.
    """
    problems: list[Problem] = []
    policy = _policy(places, env, policies, before, problems)
    flag = _flags(flags, places, before)
    files = [found for file in places.files(flags.sources) if (found := _file(file, before, frozen_sources))]
    limited = flags.wideners != "trusted"
    servers: tuple[WrittenServer, ...] = ()
    if not limited:
        servers = read_servers(places, flags.sources, problems)
        if before and "project" in frozen_sources:
            servers = _with_project_servers(servers, before.written_servers)
    own = [document for document in (*flag, *files) if _only_narrows(document, flags.wideners)]
    narrow, items = _split(own, servers, places.cwd, limited=limited)
    if not limited and "project" in flags.sources:
        items += (*project_commands(places, env), *project_agents(places, env))
    judged = not limited and (items or flags.trust)
    states, agreed = _judge(places, flags, items, before) if judged else ({}, {})
    trusted = {id(each) for each in own if states.get(_owner(each, places.cwd)) == TRUSTED}
    layers = [Layer(document, document.values) for document in policy]
    doubtful = False
    for document in (*flag, *files):
        problems += (*document.problems, *unused_note(document))
        values: Mapping[str, Any] = document.values
        if id(document) in narrow and id(document) not in trusted:
            values = narrow[id(document)]
        last = _last(before, document) if document.doubtful else None
        if last is not None:
            values = last
            problems.append(
                Problem(document.file.source, document.file.shown, 0, "what it denied before still applies.")
            )
        elif document.doubtful and document.broken is None:
            why = (
                "what it would have forbidden is not known, so no allow rule of any file applies until it is corrected."
            )
            problems.append(Problem(document.file.source, document.file.shown, 0, why))
        doubtful = doubtful or (document.doubtful and last is None)
        layers.append(Layer(document, _without_managed(document, values, problems), kept=last is not None))
    layers = _no_looser_mode(layers, {id(document) for document in own} - trusted)
    if doubtful:
        layers = [replace(layer, values=_without_allowing(layer.values)) for layer in layers]
    values = merge_values(layer.values for layer in layers)
    approved = _usable_servers(servers, layers, values.get("disabledMcpjsonServers", ()), states)
    waiting = [item for item in items if states.get(item.folder) != TRUSTED]
    waiting = [
        item for item in waiting if not (item.path[0] == "mcpServers" and approved.get(str(item.path[1])) is item.value)
    ]
    return Settings(
        layers=tuple(layers),
        values=values,
        policy=merge_values(layer.values for layer in layers if layer.source == "policy"),
        problems=tuple(problems),
        ignored=() if limited else tuple(waiting),
        items=items,
        trust=_weakest(states[folder] for folder in dict.fromkeys(item.folder for item in items) if folder in states)
        if items
        else states.get(places.cwd, UNTRUSTED),
        trust_by_folder=states,
        doubtful=doubtful,
        servers=approved,
        written_servers=servers,
        agreed=agreed,
    )


def project_commands(places: SettingsPlaces, env: Mapping[str, str]) -> "tuple[needs_trust.TrustItem, ...]":
    """What the project's commands and skills want that needs trust."""
    here = {**env, "HOME": places.home}
    folders = config_folders(Path(places.cwd), here, ("project",), SKILL_FAMILIES)
    with_commands = [each for each in folders if each.path.name in FAMILIES and (each.path / "commands").is_dir()]
    with_skills = [folder for folder in folders if (folder.path / "skills").is_dir()]
    found: list[CommandFile] = []
    if with_commands:
        found += command_files.find_commands(with_commands).by_name.values()
    if with_skills:
        skills = skill_files.find_skills(with_skills, skill_files.head_cache(places.state), starts=True)
        found += (head.skill for head in skills.by_name.heads.values() if head.widens)
    return needs_trust.command_items(found, places.folders) if found else ()


def project_agents(places: SettingsPlaces, env: Mapping[str, str]) -> "tuple[needs_trust.TrustItem, ...]":
    """The project's agent files that need trust."""
    folders = config_folders(Path(places.cwd), {**env, "HOME": places.home}, ("project",))
    with_agents = [folder for folder in folders if (folder.path / "agents").is_dir()]
    if not with_agents:
        return ()
    files = (file for folder in with_agents for file in definition_files.read_definitions(folder, "agents"))
    found = (file for file in files if isinstance(file, definition_files.DefinitionFile))
    return needs_trust.agent_items(found, places.folders)


def _policy(
    places: SettingsPlaces,
    env: Mapping[str, str],
    policies: Iterable[PolicySource],
    before: Settings | None,
    problems: list[Problem],
) -> list[SettingsDocument]:
    known = [layer.document for layer in before.layers if layer.source == "policy"] if before else None
    try:
        return read_policy(places, env, policies, known, problems)
    except SettingsError as error:
        if known is None:
            raise
        problems.append(Problem("policy", "policy", 0, f"{error}\nThe policy that was read before still applies."))
        return known


def _file(file: SettingsFile, before: Settings | None, frozen_sources: frozenset[str]) -> SettingsDocument | None:
    if before is None or file.source not in frozen_sources:
        return read_document(file)
    return next((layer.document for layer in before.layers if layer.document.file == file), None)


def _flags(flags: SettingsFlags, places: SettingsPlaces, before: Settings | None) -> list[SettingsDocument]:
    """The settings of the command line. They are read once, because the agent may be able to write such a file."""
    if before is not None:
        return [layer.document for layer in before.layers if layer.source == "flag"]
    if not flags.settings:
        return []
    text = flags.settings.strip()
    if text.startswith("{"):
        inline = SettingsFile("flag", INLINE, str(INLINE), flags.root or places.cwd, "")
        document = document_of(inline, text.encode("utf-8", "surrogateescape"))
    else:
        path = Path(places.cwd, Path(flags.settings).expanduser())
        file = SettingsFile("flag", path, flags.settings, os.path.realpath(path.parent), "")
        why = f"there is no file {flags.settings!r}. Give a file or an object in JSON."
        missing = Problem("flag", "--settings", 0, why)
        document = read_document(file) or SettingsDocument(file, "", {}, missing)
    if document.doubtful:
        raise SettingsError("\n".join(map(str, document.problems)))
    return [document]


def _with_project_servers(
    now: "tuple[WrittenServer, ...]", before: "tuple[WrittenServer, ...]"
) -> "tuple[WrittenServer, ...]":
    """The servers of now, with those of the project as they were."""
    kept = [each for each in before if each.scope == "project"]
    return (
        *(each for each in now if each.scope in ("policy", "local")),
        *(kept if not any(each.scope == "policy" for each in now) else ()),
        *(each for each in now if each.scope == "user"),
    )


def _only_narrows(document: SettingsDocument, wideners: Wideners) -> bool:
    """Whether a document of an untrusted source may only forbid."""
    match document.file.source:
        case "user":
            return wideners != "trusted"
        case "flag":
            return wideners == "policy"
        case _:
            return True


def _owner(document: SettingsDocument, cwd: str) -> str:
    """The folder whose trust a document needs."""
    file = document.file
    return file.folder if file.source in ("local", "project") else cwd


def _weakest(states: Iterable[str]) -> str:
    """The state of all folders together: what is not trusted in one is not trusted."""
    found = set(states) - {TRUSTED}
    return TRUSTED if not found else UNTRUSTED if UNTRUSTED in found else CHANGED


def _split(
    own: Iterable[SettingsDocument], servers: "tuple[WrittenServer, ...]", cwd: str, *, limited: bool
) -> "tuple[dict[int, dict[str, Any]], tuple[needs_trust.TrustItem, ...]]":
    """The values of a project's own documents that narrow, and the items that need trust."""
    present = [document for document in own if document.values]
    project = [each for each in servers if each.scope == "project"]
    if not present and not project:
        return {}, ()
    narrow: dict[int, dict[str, Any]] = {}
    items: list[needs_trust.TrustItem] = []
    for document in present:
        kept, found = needs_trust.split(document.file.source, document.values, _owner(document, cwd))
        own_limits = OWN_LIMITS if document.file.source in ("user", "flag") else ()
        narrow[id(document)] = {**kept, **_limits(document.values, kept, own_limits)} if limited else kept
        items += found
    items += [needs_trust.TrustItem("project", ("mcpServers", each.name), each.entry, each.folder) for each in project]
    return narrow, tuple(items)


def _limits(values: Mapping[str, Any], kept: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Limits that wait for trust in a foreign project, but that --bare, --safe-mode and mistakes must not lift."""
    limits = {name: values[name] for name in names if name in values}
    if values.get("sandbox", {}).get("enabled"):
        limits["sandbox"] = {**kept.get("sandbox", {}), "enabled": True, "autoAllowBashIfSandboxed": False}
    return limits


def _judge(
    places: SettingsPlaces, flags: SettingsFlags, items: "tuple[needs_trust.TrustItem, ...]", before: Settings | None
) -> "tuple[dict[str, str], dict[str, trust.TrustRecord]]":
    """The state of each folder, and the records of --trust, which cover what was there when the session began."""
    states: dict[str, str] = {}
    agreed = dict(before.agreed) if before else {}
    for folder in places.folders:
        own = [item for item in items if item.folder == folder]
        if not own and not flags.trust:
            states |= {folder: UNTRUSTED} if folder == places.cwd else {}
            continue
        now = trust.record_for(folder, own)
        if flags.trust and before is None:
            agreed[folder] = now
        given, kept = agreed.get(folder), trust.TrustStore(places.state).record_of(folder)
        known = [each for each in (given, kept, trust.union(given, kept)) if each]
        covered = any(trust.covers(each, now) for each in known)
        states[folder] = TRUSTED if covered else CHANGED if known else UNTRUSTED
    return states, agreed


def _usable_servers(
    servers: "tuple[WrittenServer, ...]", layers: list[Layer], refused: Collection[str], states: Mapping[str, str]
) -> dict[str, Any]:
    """
    The servers that may be used, by name; of the same name that of the highest scope.

    A project's server needs trust in its folder, or the approval of a source other than the project. A refusal wins.
    """
    usable: dict[str, Any] = {}
    for each in servers:
        if each.name not in usable and _may_use(each, layers, refused, states):
            usable[each.name] = each.entry
    return usable


def _may_use(server: "WrittenServer", layers: list[Layer], refused: Collection[str], states: Mapping[str, str]) -> bool:
    if server.scope != "project":
        return True
    if server.name in refused:
        return False
    if states.get(server.folder) == TRUSTED:
        return True
    # the settings of another folder of the repository mean the servers of that folder
    near = merge_values(
        layer.values
        for layer in layers
        if layer.source not in ("local", "project") or layer.document.file.folder == server.folder
    )
    return bool(near.get("enableAllProjectMcpServers")) or server.name in near.get("enabledMcpjsonServers", ())


def _last(before: Settings | None, document: SettingsDocument) -> Mapping[str, Any] | None:
    """What a broken file forbade when it could still be read."""
    if before is None:
        return None
    for layer in before.layers:
        if layer.document.file == document.file:
            if layer.kept:
                return layer.values
            return None if layer.document.doubtful else _what_forbids(layer.values)
    return None


def _what_forbids(values: Mapping[str, Any]) -> Mapping[str, Any]:
    kept = needs_trust.split("", values)[0]
    return {**kept, **_limits(values, kept, LIMITS)}


def _without_managed(
    document: SettingsDocument, values: Mapping[str, Any], problems: list[Problem]
) -> Mapping[str, Any]:
    found = [name for name in MANAGED_ONLY if name in values]
    if not found:
        return values
    problems += [document.problem((name,), "works only in policy files and has no effect here.") for name in found]
    return {name: value for name, value in values.items() if name not in found}


def _no_looser_mode(layers: list[Layer], own: set[int]) -> list[Layer]:
    """Without modes by which an untrusted project would loosen the mode in force without it."""
    if not any(id(layer.document) in own and _mode(layer.values) for layer in layers):
        return layers
    others = merge_values(layer.values for layer in layers if id(layer.document) not in own)
    usual = _mode(others) or "default"
    return [
        replace(layer, values=_without_permissions(layer.values, "defaultMode"))
        if id(layer.document) in own and (mode := _mode(layer.values)) and not stricter(mode, usual)
        else layer
        for layer in layers
    ]


def _mode(values: Mapping[str, Any]) -> str:
    mode: str = values.get("permissions", {}).get("defaultMode", "")
    return mode


def _without_allowing(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values without what allows calls, for while it is unknown what is forbidden."""
    mode = _mode(values)
    kept = _without_permissions(values, "allow", "additionalDirectories", "readableServices")
    if mode and stricter("default", mode):
        kept = _without_permissions(kept, "defaultMode")
    if "sandbox" in kept:
        closed = {"autoAllowBashIfSandboxed": False, "allowUnsandboxedCommands": False}
        kept = {**kept, "sandbox": {**kept["sandbox"], **closed}}
    return kept


def _without_permissions(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    permissions = {name: value for name, value in values.get("permissions", {}).items() if name not in names}
    return {**values, "permissions": permissions} if "permissions" in values else dict(values)

"""The configuration of `handrail serve`: from its file, or from flags."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from handrail.cli.view import user_name
from handrail.config.flags import SettingsFlags
from handrail.errors import HandrailError
from handrail.remote.config import (
    NAME,
    ClientEntry,
    FolderEntry,
    PolicyEntry,
    RunPolicy,
    ServeConfig,
    ServeFile,
    build_config,
    read_config,
)

__all__ = ["about", "config_of_flags", "read_config"]

POLICY = "flags"


def config_of_flags(folders: Sequence[str], flags: SettingsFlags, digest: str) -> ServeConfig:
    """One client, who may do in each folder what the flags say, and answer questions."""
    entries: dict[str, FolderEntry] = {}
    for word in folders:
        name, sign, path = word.partition("=")
        if not sign or not path or name in entries:
            raise HandrailError(
                f"--folder {word!r} is not understood. Write a name of its own and a path: shop=/srv/shop."
            )
        entries[name] = FolderEntry(path=path, policies=[POLICY])
    name = user_name()
    client = name if NAME.fullmatch(name) else "client"
    file = ServeFile(
        folders=entries,
        policies={POLICY: PolicyEntry()},
        clients={client: ClientEntry(tokenSha256=digest, folders=["*"], answers=True)},
    )
    config = build_config(file, "--folder", Path.cwd())
    policy = config.policies[POLICY]
    given = replace(flags, mode=flags.mode or "default", allow_bypass=False)
    return replace(config, policies={POLICY: replace(policy, flags=given)})


def about(config: ServeConfig) -> Iterator[str]:
    """What a configuration allows, for its operator."""
    for client in config.clients.values():
        answers = "and may answer questions" if client.answers else "and may not answer questions"
        yield f"{client.name} may start runs in {', '.join(sorted(client.folders)) or 'no folder'}, {answers}"
    for folder in config.folders.values():
        clock = f"; schedules start under {folder.schedules}" if folder.schedules else ""
        yield f"{folder.name} is {folder.path}, under {', '.join(folder.policies)}{clock}"
    for name, policy in config.policies.items():
        flags = policy.flags
        rules = (("allows", flags.allowed), ("asks about", flags.ask), ("denies", flags.disallowed))
        said = [f"{word} {', '.join(texts)}" for word, texts in rules if texts]
        asks = "clients are asked" if policy.questions else "what the rules leave open is refused"
        yield f"{name} is mode {flags.mode}; {'; '.join((*said, asks, *_bounds(policy)))}"


def about_value(config: ServeConfig) -> dict[str, Any]:
    """The same for programs."""
    return {
        "clients": [
            {"name": client.name, "folders": sorted(client.folders), "answers": client.answers}
            for client in config.clients.values()
        ],
        "folders": [
            {
                "name": folder.name,
                "path": str(folder.path),
                "policies": list(folder.policies),
                "schedules": folder.schedules or None,
            }
            for folder in config.folders.values()
        ],
        "policies": [
            {
                "name": name,
                "mode": policy.flags.mode,
                "allow": list(policy.flags.allowed),
                "ask": list(policy.flags.ask),
                "deny": list(policy.flags.disallowed),
                "questions": policy.questions,
                "worktree": policy.worktree,
                "maxDollars": policy.limits.dollars,
                "maxSeconds": policy.limits.seconds,
                "settings": _settings_of(policy),
            }
            for name, policy in config.policies.items()
        ],
    }


def _settings_of(policy: RunPolicy) -> list[str]:
    """The file, or the names of the keys: values of `env` may be secret."""
    settings = policy.flags.settings
    return list(json.loads(settings)) if settings.startswith("{") else [settings] if settings else []


def _bounds(policy: RunPolicy) -> Iterator[str]:
    if policy.worktree:
        yield "each run has a worktree of its own"
    if policy.limits.dollars is not None:
        yield f"at most ${policy.limits.dollars:g} for a prompt"
    if policy.limits.seconds is not None:
        yield f"at most {policy.limits.seconds:g} seconds for a prompt"
    if settings := _settings_of(policy):
        yield f"with settings of {', '.join(settings)}"

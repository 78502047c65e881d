"""Where a request may start a run: a folder that is listed, for a client that may use it, under a policy of it."""

import os
from collections.abc import Mapping

from handrail.errors import HttpRefusalError
from handrail.records import record
from handrail.remote.config import RunPolicy, ServeConfig, ServedFolder

SETTINGS_FOLDERS = frozenset({".git", ".handrail", ".claude"})
"""Nothing works inside them: what lies there decides what runs may do."""


@record
class RunPlace:
    """A folder and a policy that a client may use. `folder` is the real path, `root` that of the listed folder."""

    root: str
    folder: str
    policy: RunPolicy
    policy_name: str


def find_place(config: ServeConfig, client: str, folder: str, path: str, policy: str) -> RunPlace:
    """
    The place of a run; HttpRefusalError if the client may not use it, or it is not there.

    `client` empty: the person whose server it is, by a schedule. A folder that is not listed for a client is as unknown
    as one that does not exist.
    """
    allowed = _folders_of(config, client)
    found = allowed.get(folder)
    if found is None:
        raise HttpRefusalError(404, f"There is no folder {folder!r} for you. Yours are: {', '.join(sorted(allowed))}.")
    name = policy or found.policies[0]
    if name not in found.policies:
        listed = ", ".join(found.policies)
        raise HttpRefusalError(403, f"The policy {name!r} is not one of {folder!r}. It has: {listed}.")
    return RunPlace(found.path, real_folder(found.path, path), config.policies[name], name)


def _folders_of(config: ServeConfig, client: str) -> Mapping[str, ServedFolder]:
    if not client:
        return config.folders
    known = config.clients.get(client)
    return {name: config.folders[name] for name in known.folders} if known else {}


def real_folder(root: str, path: str) -> str:
    """The real path of a folder below a real one; HttpRefusalError if it leads out of it or is not a folder."""
    steps = [step for step in path.split("/") if step not in ("", ".")]
    if path.startswith(("/", "~")) or ".." in steps or "\0" in path:
        raise HttpRefusalError(400, f"{path!r} is not a path below the folder. Give one like packages/api.")
    found = os.path.realpath("/".join((root, *steps)))
    if not is_below(found, root):
        raise HttpRefusalError(400, f"{path!r} leads out of the folder. Give a path that stays in it.")
    inside = found.removeprefix(root).split("/")
    if SETTINGS_FOLDERS.intersection(step.lower() for step in inside):
        raise HttpRefusalError(400, f"{path!r} lies in a folder of settings. Runs do not work there.")
    if not os.path.isdir(found):  # noqa: PTH112  # a text
        raise HttpRefusalError(404, f"{path or '.'!r} is not a folder there.")
    return found


def is_below(path: str, root: str) -> bool:
    """Whether a real path is a folder or lies below it."""
    return path == root or path.startswith(f"{root.rstrip('/')}/")


def schedule_folder(config: ServeConfig, folder: str) -> ServedFolder | None:
    """The listed folder whose schedules include those of a real path; the deepest. None if they are not started."""
    fitting = [each for each in config.folders.values() if is_below(folder, each.path)]
    deepest = max(fitting, key=lambda each: len(each.path), default=None)
    return deepest if deepest is not None and deepest.schedules else None

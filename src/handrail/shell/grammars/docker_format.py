"""
Formats of `docker inspect` (Go templates): fields of a closed list, and loops over them.

The environment and the command of a container are not in the list: they may hold secrets.
"""

import re

from handrail.errors import UnclearError
from handrail.shell.model import Effect

FIELDS = (
    "Id Name Created State Image RestartCount Driver Platform Mounts NetworkSettings SizeRw SizeRootFs LogPath "
    "RepoTags RepoDigests Size Architecture Os Config.Image Config.Hostname Config.Labels Config.ExposedPorts "
    "Config.WorkingDir Config.User Config.Healthcheck HostConfig.RestartPolicy HostConfig.NetworkMode "
    "HostConfig.PortBindings HostConfig.Memory HostConfig.Privileged"
).split()
ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
PATH = r"\.[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*"
LISTED = re.compile(rf"(?:{'|'.join(re.escape('.' + name) for name in FIELDS)})(?:\.[A-Za-z0-9_]+)*\Z")
RANGE = re.compile(rf"range\s+(?:\$[a-z]\w*\s*,\s*)?(?:\$[a-z]\w*\s*:=\s*)?({PATH})\Z")
SHOWN = re.compile(rf"(?:(?:json|println|lower|upper)\s+)?({PATH}|\.|\$[a-z]\w*(?:{PATH})?)\Z")


def read(text: str) -> tuple[Effect, ...]:
    inside = 0
    for found in ACTION.finditer(text):
        action = found[1]
        if action == "end" and inside:
            inside -= 1
        elif loop := RANGE.match(action):
            check(loop[1], inside)
            inside += 1
        elif shown := SHOWN.match(action):
            check(shown[1], inside)
        else:
            raise UnclearError(f"{found[0]!r} is not read")
    if "{{" in ACTION.sub("", text):
        raise UnclearError("an action that is not closed")
    return ()


def check(path: str, inside: int) -> None:
    """Inside a loop the dot is an item of what was listed."""
    if not inside and not LISTED.match(path):
        raise UnclearError(f"{path!r} may hold secrets")

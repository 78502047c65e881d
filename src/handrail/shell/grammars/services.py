"""Words of docker, kubectl and the command lines of forges."""

import re

from handrail.errors import UnclearError
from handrail.shell.model import Does, Effect, Word

# Formats of `docker inspect` (Go templates): fields of a closed list, and loops over them.
#
# The environment and the command of a container are not in the list: they may hold secrets.

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


def docker_format(text: str) -> tuple[Effect, ...]:
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


# Values of kubectl's -o: names of formats, templates and paths given on the command line, not in a file.

OUTPUT = re.compile(
    r"=?(?:json|yaml|kyaml|name|wide|plaintext|plaintext-openapiv2"  # -o=json is -o json
    r"|(?:go-template|jsonpath|jsonpath-as-json|custom-columns)=.*)\Z",
    re.DOTALL,
)


def kube_output(text: str) -> tuple[Effect, ...]:
    if not OUTPUT.match(text):
        raise UnclearError(f"the output format {text!r} is not listed")
    return ()


# Operands of `kubectl get` and `describe`: kinds and names. Kinds of secrets are an effect.

SECRETS = ("secret", "token", "credential", "certificatesigning")


def kube_resources(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    effects: list[Effect] = []
    for at, word in enumerate(words):
        text = word.literal
        if text is None:
            raise UnclearError(f"{word} is not literal", word.start, word.end, "kubectl")
        kinds = [part.partition("/")[0].lower() for part in text.split(",") if at == 0 or "/" in part]
        if any(name in kind for kind in kinds for name in SECRETS):
            effects.append(Effect(Does.SECRET, word, "shows secrets of the cluster"))
    return tuple(effects)


# What gh and glab are asked for: a number, a name, OWNER/REPO, or an address on the two public forges.

TARGET = re.compile(r"(?:https://(?:github|gitlab)\.com/[A-Za-z0-9_./#-]+|#?[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)?)\Z")


def forge_target(text: str) -> tuple[Effect, ...]:
    if not TARGET.match(text):
        raise UnclearError(f"{text!r} may name another host")
    return ()


# Operands and values of `npm ls`: a number, and names of packages. A path would be another folder.

PACKAGE = re.compile(r"(?:@[a-z0-9~][a-z0-9._~-]*/)?[A-Za-z0-9_~][A-Za-z0-9._~-]*(?:@[0-9A-Za-z.^~<>=*-]*)?\Z")


def whole_number(text: str) -> tuple[Effect, ...]:
    if not (text.isascii() and text.isdecimal()):
        raise UnclearError(f"{text!r} is not a number")
    return ()


def package_name(text: str) -> tuple[Effect, ...]:
    if not PACKAGE.match(text):
        raise UnclearError(f"{text!r} is not the name of a package")
    return ()

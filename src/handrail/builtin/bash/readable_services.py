"""
Whether a command asks a cluster or forge that the user has named as readable (`permissions.readableServices`).

It is asked with the user's own sign-in, so only what surely reaches a named service passes: the current context of the
user's own kubectl configuration, and the remotes of the repository. A line that chooses another one is asked about.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from handrail.lazy import lazy_pattern
from handrail.shell.model import Segment

CLUSTER, FORGE = "kube-cluster", "forge"
SETTING = "permissions.readableServices"
# Variables that choose another service or hold the sign-in. Commands that only read are not given them.
CHOOSING = {
    CLUSTER: ("KUBECONFIG", "HELM_KUBECONTEXT", "HELM_KUBEAPISERVER", "HELM_KUBETOKEN"),
    FORGE: ("GH_HOST", "GH_REPO", "GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"),
}
OF_A_REPOSITORY = lazy_pattern(r"gh (?:pr|issue|run|release|workflow|label) |gh repo view\Z")
CURRENT_CONTEXT = lazy_pattern(r"^current-context:[ \t]*(['\"]?)([^'\"\s#]+)\1[ \t]*$", re.MULTILINE)
REMOTE_HOST = lazy_pattern(r"(?:[a-z+]+://(?:[^@/]*@)?|(?:[^@/:]+@)?)([A-Za-z0-9.-]+)[:/]")
MAX_CONFIG = 1_000_000


def chosen_elsewhere(kind: str, given: Mapping[str, str]) -> str:
    """Why a variable of the user makes it unknown which service would be asked; empty = none does."""
    found = next((name for name in CHOOSING[kind] if given.get(name)), "")
    return f"{found} is set, which commands that only read are not given" if found else ""


def cluster_problem(segment: Segment, home: str, allowed: Sequence[str]) -> str:
    """Why a command may ask a cluster that the settings do not name; empty = it does not."""
    if any("context" in str(word) for word in segment.argv if str(word).startswith("-")):
        return "it chooses a cluster itself"
    context = current_context(home)
    if not context:
        return "it is not known which cluster it would ask"
    return reason_not_named("cluster", context, allowed)


def current_context(home: str) -> str:
    """The context that the user's own configuration of kubectl chooses; empty if it is not known."""
    try:
        with Path(home, ".kube", "config").open(encoding="utf-8") as file:
            text = file.read(MAX_CONFIG)
    except (OSError, UnicodeDecodeError):
        return ""
    found = CURRENT_CONTEXT.findall(text)
    return found[0][1] if len(found) == 1 and text.count("current-context") == 1 else ""


def forge_problem(segment: Segment, listing: str, allowed: Sequence[str]) -> str:
    """Why a command may ask a forge that the settings do not name. `listing`: see `hosts`; empty = it does not."""
    words = [str(word) for word in segment.argv[1:]]
    if not OF_A_REPOSITORY.match(segment.entry) or any(
        word.startswith(("-R", "--repo")) or "/" in word for word in words
    ):
        return "it asks for more than the repository here"
    found = sorted(set(hosts(listing)))
    if not found:
        return "it is not known which forge it would ask"
    return next(filter(None, (reason_not_named("forge", host, allowed) for host in found)), "")


def reason_not_named(kind: str, name: str, allowed: Sequence[str]) -> str:
    service = f"{kind}:{name}"
    return "" if service in allowed else f"{SETTING} of your own settings does not name {service!r}"


def hosts(listing: str) -> Iterator[str]:
    """The hosts of the addresses that `git remote -v` lists, and those that the settings `gh-resolved` name."""
    for line in listing.splitlines():
        name, _, value = line.replace("\t", " ", 1).partition(" ")
        if not name.endswith(".gh-resolved"):
            found = REMOTE_HOST.match(value)
            yield found[1].lower() if found else value
        elif value.count("/") > 1:
            yield value

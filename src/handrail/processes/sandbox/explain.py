"""Explains to the model what the sandbox had to do with a failed command."""

import re
from collections.abc import Sequence

from handrail.lazy import lazy_pattern
from handrail.processes.sandbox.choose import Method
from handrail.processes.sandbox.plan import NetworkReach, PathAccess, Plan, is_covered

TAIL = 20_000
"""Only the end of the output is looked at; that is where a failure says why."""
PATH = lazy_pattern(r"['\"`‘]?(/[^\s:'\"`’]+)")  # noqa: RUF001 - quotation marks as programs print them
SHELL = lazy_pattern(r"^\S+: (?:line )?\d+: ")
"""How a shell begins its own complaints: with its path, which is not what the complaint is about."""
WORD = lazy_pattern(r"[^\s:'\"`‘’]+")  # noqa: RUF001
READ_ONLY = lazy_pattern(r"read-only file system|EROFS", re.IGNORECASE)
DENIED = lazy_pattern(r"permission denied|operation not permitted|EACCES|EPERM", re.IGNORECASE)
ABSENT = lazy_pattern(r"no such file or directory|ENOENT|cannot find", re.IGNORECASE)
NETWORK = lazy_pattern(
    r"network is unreachable|could not resolve|temporary failure in name resolution|name or service not known"
    r"|getaddrinfo|EAI_AGAIN|ENETUNREACH|nodename nor servname|failed to establish a new connection|no route to host"
    r"|failed to connect to|could ?n[o']t connect to server|unable to connect to",
    re.IGNORECASE,
)
LOOPBACK = lazy_pattern(r"\blocalhost\b|\b127\.\d+\.\d+\.\d+\b|::1\b")
PROXY = lazy_pattern(
    r"handrail sandbox: ([^\n]+)|x-handrail: ([^\r\n]+)|CONNECT tunnel failed, response 403", re.IGNORECASE
)
REFUSED = lazy_pattern(r"\b(?:403|502)\b|forbidden|proxy|tunnel", re.IGNORECASE)
SETUP = lazy_pattern(r"^bwrap: (.+)$", re.MULTILINE)


def explain(output: str, code: int, plan: Plan, method: Method, *, can_leave: bool, refused: Sequence[str] = ()) -> str:
    """
    A sentence that names the sandbox, what it stopped and what would be allowed; nothing if it stopped nothing.

    `refused` is what the proxy told programs that may not have shown it.
    """
    if code == 0:
        return ""
    cause = _because(output[-TAIL:], plan, method, refused)
    if not cause:
        return ""
    way_out = " If it is needed, ask the user, or run it again with dangerouslyDisableSandbox." if can_leave else ""
    return f"The sandbox stopped this: {cause}{way_out}"


def _because(output: str, plan: Plan, method: Method, refusals: Sequence[str]) -> str:
    setup = SETUP.search(output)
    if setup and method is Method.BUBBLEWRAP:
        return f"it could not be set up ({setup[1]}), so the command did not run."
    refused = PROXY.search(output)
    if refused:
        shown = refused[1] or refused[2] or (refusals[-1] if refusals else "the domain is not allowed")
        return f"{shown}. {_reachable(plan)}"
    if refusals and REFUSED.search(output):
        return f"{refusals[-1]}. {_reachable(plan)}"
    for line in (SHELL.sub("", each) for each in output.splitlines()):
        if plan.reach is not NetworkReach.HOST and NETWORK.search(line) and not LOOPBACK.search(line):
            return _reachable(plan)
        if READ_ONLY.search(line):
            return _not_writable(line, plan)
        hidden = _first(line, plan, PathAccess.HIDDEN, PathAccess.PRIVATE) or _by_name(line, plan)
        if hidden and (ABSENT.search(line) or DENIED.search(line)):
            return f"{hidden!r} is hidden. sandbox.filesystem.allowRead would show it."
        if method is Method.LANDLOCK and DENIED.search(line):
            return f"{_not_writable(line, plan)} New entries cannot be made directly in a working folder or in .git."
    return ""


def _by_name(line: str, plan: Plan) -> str:
    """The hidden path in a working folder that the line names by its last parts."""
    words = [word for word in WORD.findall(line) if not word.startswith("/")]
    hidden = [path for path, access in plan.marks if access is PathAccess.HIDDEN and is_covered(path, plan.writable)]
    return next((path for word in words for path in hidden if path.endswith(f"/{word.removeprefix('./')}")), "")


def _not_writable(line: str, plan: Plan) -> str:
    path = _first(line, plan, PathAccess.READ)
    what = f"{path!r} is read-only" if path else "something it wanted to write is read-only"
    return f"{what}. Writable are {', '.join(plan.writable)} (without .git/hooks, settings and the like) and $TMPDIR."


def _reachable(plan: Plan) -> str:
    if plan.reach is NetworkReach.OFF:
        return "there is no network. sandbox.network.allowedDomains would open some domains."
    names = ", ".join(domain.pattern for domain in plan.allowed)
    return f"Only {names} can be reached, and only by programs that use HTTP_PROXY."


def _first(line: str, plan: Plan, *wanted: PathAccess) -> str:
    """The first path in the line that is one of these."""
    return next((path for path in PATH.findall(line) if plan.access(path.rstrip("/.,;)") or "/") in wanted), "")

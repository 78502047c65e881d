"""Exit codes that are answers and not failures."""

from handrail.shell.model import Analysis, Segment

NO_MATCH = {1: "no match was found"}
DIFFER = {1: "they differ"}
FALSE = {1: "the condition is false"}
NOT_FOUND = {1: "it was not found"}
NO_PROCESS = {1: "no process matches"}

MEANINGS: dict[str, dict[int, str]] = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg", "ag", "ack", "zgrep", "git grep"), NO_MATCH),
    **dict.fromkeys(("diff", "cmp", "sdiff", "colordiff"), DIFFER),
    **dict.fromkeys(("git diff", "git diff-index", "git diff-files", "git diff-tree"), DIFFER),
    **dict.fromkeys(("test", "[", "[["), FALSE),
    **dict.fromkeys(("which", "type", "command", "hash", "whereis"), NOT_FOUND),
    **dict.fromkeys(("pgrep", "pidof", "pkill"), NO_PROCESS),
    "find": {1: "some folders could not be read"},
    "expr": {1: "the result is zero or empty"},
    "git check-ignore": {1: "none of them is ignored"},
    "git merge-base": {1: "there is no common ancestor, or it is not an ancestor"},
    "git show-ref": {1: "there is no such reference"},
    "git config": {1: "the setting is not there"},
    "systemctl is-active": {3: "it is not active"},
    "systemctl is-enabled": {1: "it is not enabled"},
}
THROUGH = frozenset({"timeout", "env", "nice", "time", "command", "nohup", "stdbuf", "ionice"})
"""Programs that start another command and return its exit code."""


def exit_code_meaning(analysis: Analysis, code: int) -> str:
    """The meaning of an exit code that is not a failure; empty if it is one."""
    if analysis.problems or code == 0:
        return ""
    ways = [segment for segment in analysis.segments if THROUGH.issuperset(segment.path)]
    return next((known[code] for known in meanings_of(ways[-1]) if code in known), "") if ways else ""


def meanings_of(segment: Segment) -> list[dict[int, str]]:
    """The meanings for the program and its subcommand."""
    words = [word.literal or "" for word in segment.argv[1:]]
    sub = next((word for word in words if word and not word.startswith("-")), "")
    return [MEANINGS[name] for name in (f"{segment.name} {sub}", segment.name) if name in MEANINGS]

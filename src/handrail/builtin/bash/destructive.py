"""Tells which commands destroy data for good."""

from handrail.shell.model import Analysis

PROGRAMS = frozenset("rm rmdir unlink shred dd mkfs truncate wipefs".split())  # noqa: SIM905
OF_GIT = {
    "reset": {"--hard"},
    "clean": set[str](),
    "checkout": {"--", "-f", "--force", "."},
    "restore": set[str](),
    "push": {"-f", "--force", "--force-with-lease", "--delete", "-d", "--mirror"},
    "branch": {"-D", "-d", "--delete"},
    "stash": {"drop", "clear"},
    "rebase": set[str](),
    "filter-branch": set[str](),
    "gc": {"--prune=now"},
}


def is_destructive(analysis: Analysis) -> bool:
    """Whether a part of the command line removes or overwrites data for good."""
    lines = [tuple(word.literal or str(word) for word in segment.argv) for segment in analysis.segments]
    return any(destroys_words(words) for words in (*lines, *analysis.suspects))


def destroys_words(words: tuple[str, ...]) -> bool:
    name = words[0].rpartition("/")[2] if words else ""
    if name != "git":
        return name in PROGRAMS or name.startswith("mkfs.")
    subcommand = next((word for word in words[1:] if word in OF_GIT), "")
    return bool(subcommand) and (not OF_GIT[subcommand] or not OF_GIT[subcommand].isdisjoint(words))

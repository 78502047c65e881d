"""
The Case: everything that a decision depends on, collected before it is made.

`make_case` reads the files, command lines and addresses that the tool declares for a call, and resolves paths with the
`Lookup` that it is given. It touches the file system in no other way.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from handrail.conversation.blocks import ToolUse
from handrail.files.paths import MAX_BENEATH, FolderContents, Place
from handrail.files.paths import FileKind as PlaceKind
from handrail.http.web_url import WebTarget, read_url
from handrail.lazy import lazy
from handrail.permissions.facts import Facts
from handrail.permissions.file_access import FileAccess, FileEffect, Lookup, assess_place
from handrail.permissions.policy import Policy
from handrail.permissions.rules import ALIASES, mcp_of
from handrail.records import record
from handrail.tools.access import Access
from handrail.tools.tool import McpInfo

if TYPE_CHECKING:
    from handrail.permissions import implied_paths as folders_written
    from handrail.permissions import recursive_reads as folders_read
    from handrail.permissions.command_parts import CommandPart
    from handrail.shell.model import Analysis
else:
    folders_read = lazy("handrail.permissions.recursive_reads")
    folders_written = lazy("handrail.permissions.implied_paths")

commands = lazy("handrail.permissions.shell_case")  # it makes cases too, and loads what reads command lines: 25 ms


@record
class Case:
    """One call: what it is, what it accesses, what was said about it, and the policy in force."""

    use: ToolUse
    policy: Policy
    tool: str
    facts: Facts
    mcp: McpInfo | None = None
    read_only: bool = False
    files: tuple[FileAccess, ...] = ()
    analysis: "Analysis | None" = None
    parts: "tuple[CommandPart, ...]" = ()
    free: tuple[bool, ...] = ()
    """For each part, whether it needs no rule."""
    opened: tuple[bool, ...] = ()
    """For each part, whether all files that the shell opens for it may be opened."""
    background: bool = False
    """Whether a part keeps running after the command line returns."""
    targets: tuple[WebTarget, ...] = ()
    named_files: tuple[FileAccess, ...] = ()
    """Files that the input of a foreign tool names. Only what denies or asks looks at them, and at `named_targets`."""
    named_targets: tuple[WebTarget, ...] = ()
    subjects: tuple[Place, ...] = ()
    """Where its subject would be as a path, if it declares files and a rule may be about its subject."""

    @property
    def access(self) -> Access:
        """What the tool declares."""
        return self.facts.access

    @property
    def only_edits(self) -> bool:
        """Whether it only changes files. A call that its tool calls destructive is more than an edit."""
        access = self.facts.access
        return access.changes_files and access.runs is None and not access.reaches and not self.facts.destructive


MAX_LOOKED_AT = 200_000
TOO_MUCH = "the folders that it searches hold too many files to check"
ELSEWHERE = "git would work in another folder, and the configuration of a repository there names programs to run"


def make_case(use: ToolUse, policy: Policy, lookup: Lookup, facts: Facts | None = None) -> Case:
    """Build the case of one call under one policy."""
    facts = facts or Facts()
    tool = ALIASES.get(use.name, use.name)
    mcp = facts.mcp or mcp_of(use.name)
    access = facts.access
    files = () if access.own else tuple(file_touches(access, policy, lookup))
    targets = tuple(map(read_url, access.reaches))
    read_only = facts.read_only and not access.changes_files  # what changes files does not only read
    case = Case(
        use,
        policy,
        tool,
        facts,
        mcp,
        read_only,
        files,
        targets=targets,
        named_files=tuple(named_files(access.may_touch, policy, lookup)) if access.may_touch else (),
        named_targets=tuple(map(read_url, access.may_reach)),
        subjects=subjects(facts, policy, lookup) if files else (),
    )
    if access.runs is None or access.shell != "bash":
        return case
    of_command: Case = commands.shell_case(case, access.runs, lookup)
    return of_command


def subjects(facts: Facts, policy: Policy, lookup: Lookup) -> tuple[Place, ...]:
    """The places of the paths that a call may be about, however its tool spells them where it declares them."""
    for index in policy.index.values():
        if index.own:
            return tuple([lookup.resolve(path, policy.cwd, policy.home) for path in facts.subject_paths()])
    return ()


def file_touches(access: Access, policy: Policy, lookup: Lookup) -> Iterator[FileAccess]:
    """The declared files. A folder stands for its contents, unless the tool leaves out hidden files itself."""
    folders: list[tuple[Place, FileEffect]] = []
    for paths, does in (
        (access.reads, FileEffect.READ),
        (access.walks, FileEffect.READ),
        (access.writes, FileEffect.WRITE),
        (access.removes, FileEffect.WRITE),
        (access.removes, FileEffect.REMOVE),
    ):
        for spelling in paths:
            place = lookup.resolve(spelling, policy.cwd, policy.home)
            yield assess_place(policy, place, does, spelling)
            if place.kind is PlaceKind.FOLDER and not access.filtered:
                folders.append((place, does))
    finite = lookup._replace(beneath=limit_listing(lookup.beneath)) if folders else lookup
    for place, does in folders:
        otherwise = FileAccess(None, FileEffect.BELOW, place.spelling, doubt=TOO_MUCH)
        if does is FileEffect.READ:
            inside = folders_read.reads_below(place, folders_read.EVERY_FILE, -1, policy, finite)
            yield from unless_too_much(inside, otherwise)
        elif does is FileEffect.WRITE:
            yield from unless_too_much(folders_written.accesses_inside(place, does, -1, policy, finite), otherwise)


def named_files(spellings: Iterable[str], policy: Policy, lookup: Lookup) -> Iterator[FileAccess]:
    """Files that a foreign tool may read, write or leave alone, and those in folders that rules keep back."""
    finite = lookup._replace(beneath=limit_listing(lookup.beneath))
    for spelling in spellings:
        place = lookup.resolve(spelling, policy.cwd, policy.home)
        yield assess_place(policy, place, FileEffect.MAYBE, spelling)
        if place.kind is PlaceKind.FOLDER and not folders_read.is_unguarded(policy):
            inside = folders_read.reads_below(place, folders_read.EVERY_FILE, -1, policy, finite)
            yield from unless_too_much(inside, FileAccess(None, FileEffect.BELOW, spelling, doubt=TOO_MUCH))


class _TooMuchError(Exception):
    """Listing all files that a call may access would take too long."""


def limit_listing(
    beneath: Callable[[str, bool], FolderContents | None],
) -> Callable[[str, bool], FolderContents | None]:
    """The same lookup with a limit on the files it lists: a line may name the same folder a hundred times."""
    left = MAX_LOOKED_AT

    def list_within_limit(folder: str, hidden: bool) -> FolderContents | None:
        nonlocal left
        if left <= 0:
            raise _TooMuchError
        found = beneath(folder, hidden)
        left -= MAX_BENEATH if found is None else len(found.paths)
        return found

    return list_within_limit


def unless_too_much(found: Iterable[FileAccess], otherwise: FileAccess) -> Iterator[FileAccess]:
    """What is found with a limited lookup; at the limit, the other access in place of the rest."""
    try:
        yield from found
    except _TooMuchError:
        yield otherwise


def looks_around(access: Access) -> bool:
    """Whether deciding on a call may have to list whole folders, which takes a while."""
    if access.runs is None or access.shell != "bash":
        return bool(access.removes or access.may_touch or (access.walks and not access.filtered))
    looks: bool = commands.looks_around(access.runs)
    return looks

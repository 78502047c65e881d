"""Which rules match a case. Deny and ask rules match when anything in it does; allow rules must cover all of it."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from handrail.files.paths import Place
from handrail.lazy import lazy
from handrail.permissions.case import Case
from handrail.permissions.file_access import INSIDE, READING, FileAccess, FileEffect, allowed_by
from handrail.permissions.index import RuleIndex
from handrail.permissions.policy import Policy
from handrail.permissions.powershell import as_written, behind_options
from handrail.permissions.rules import BASH, EDIT, POWERSHELL, READ, SKILL, WEB_FETCH, Behaviour, Rule
from handrail.permissions.wildcards import WORD_END
from handrail.records import record
from handrail.tools.access import Access

if TYPE_CHECKING:
    from handrail.permissions import commands_in_texts as texts_run
else:  # it reads command lines, which is loaded with the first of them
    texts_run = lazy("handrail.permissions.commands_in_texts")


def matching_rules(case: Case, behaviour: Behaviour) -> list[Rule]:
    """The rules of one behaviour that match, without duplicates."""
    index = case.policy.index[behaviour]
    found = allowing_rules(case, index) if behaviour is Behaviour.ALLOW else objecting_rules(case, index)
    return found if len(found) < 2 else list(dict.fromkeys(found))


def all_matches(case: Case) -> tuple[Rule, ...]:
    """Every rule that matches as it is written: deny, ask, then allow."""
    kinds = (Behaviour.DENY, Behaviour.ASK, Behaviour.ALLOW)
    return tuple(rule for kind in kinds for rule in matching_rules(case, kind) if not rule.broken)


# Deny and ask


def objecting_rules(case: Case, index: RuleIndex) -> list[Rule]:
    found = index.whole_tool(case.tool, case.mcp)
    for family in families(case.access):
        found += index.whole_tool(family, None) if family != case.tool else ()
    if index.params:
        found += index.by_parameter(index.names_of(case.tool, case.mcp), case.use.input)
    if case.files or case.named_files:
        found += by_path(case, index)
    if case.analysis is not None:
        found += commands(case, index)
    for target in (*case.targets, *case.named_targets):
        found += index.domains.find(target, index.behaviour) if target.host else []
    return found + by_name(case, index)


def families(access: Access) -> Iterator[str]:
    """The rule families of what a call declares: a deny or ask rule with such a bare name is about every such call."""
    if access.own:
        return
    if access.reads or access.walks:
        yield READ
    if access.changes_files:
        yield EDIT
    if access.runs is not None:
        yield POWERSHELL if access.shell == "powershell" else BASH
    if access.reaches:
        yield WEB_FETCH


def by_path(case: Case, index: RuleIndex) -> list[Rule]:
    """The rules about the files of a call. A file that may not be read may not be written either."""
    found: list[Rule] = []
    if index.read.empty and index.edit.empty:
        return found
    for file in (*case.files, *case.named_files):
        for path in file.paths if file.effect not in INSIDE else ():
            found += index.read.find(path)
            if file.effect is not FileEffect.READ:
                found += index.edit.find(path)
    return found


def denied_inside(below: Sequence[FileAccess], policy: Policy) -> tuple[FileAccess, Rule] | None:
    """A file in a folder or text that a deny or ask rule matches, and that rule."""
    for kind in (Behaviour.DENY, Behaviour.ASK):
        index = policy.index[kind]
        for file in below:
            for path in file.paths:
                touched = index.edit.find(path) if file.effect is FileEffect.MAYBE_BELOW else []
                if rules := [*index.read.find(path), *touched]:
                    return file, rules[0]
    return None


def commands(case: Case, index: RuleIndex) -> list[Rule]:
    assert case.analysis is not None
    found: list[Rule] = []
    for part in case.parts:
        for text in part.suspects:
            found += index.shell.find(text)
        if part.powershell:
            found += index.whole_tool(POWERSHELL, None)
            for text in behind_options(part.text.split(WORD_END)[1:]):
                found += index.powershell.find(text, index.behaviour)
    for words in case.analysis.suspects:
        found += index.shell.find(WORD_END.join(words).rstrip(WORD_END))
    return found + index.shell.find_whole(case.analysis.text, index.behaviour)


def possible_matches(case: Case) -> list[Rule]:
    """Deny and ask rules that may match the parts of a command line that are unknown before it runs."""
    if case.analysis is None:
        return []
    indexes = [case.policy.index[kind] for kind in (Behaviour.DENY, Behaviour.ASK)]
    if all(index.shell.empty and not index.powershell.rules for index in indexes):
        return []
    inside = texts_run.commands_in_line(case.analysis.command)
    openings = inside.openings.union(opening for part in case.parts for opening in part.openings)
    texts = [*(WORD_END.join(words) for words in case.analysis.guesses), *sorted(inside.commands)]
    found = [
        rule for index in indexes for opening in sorted(openings) for rule in index.shell.possible_matches(opening)
    ]
    if any(part.powershell for part in case.parts):
        found += [rule for index in indexes for _, rule in index.powershell.rules]
    return found + [rule for index in indexes for text in texts for rule in index.shell.find(text)]


def by_name(case: Case, index: RuleIndex) -> list[Rule]:
    """Rules with content about this tool, or about the shell that it runs."""
    access = case.facts.access
    found = by_subject(case, index) if index.own else []
    if case.tool == SKILL:
        found += index.skill(case.use.input)
    if access.runs is not None and access.shell == "powershell":
        found += index.powershell.find(access.runs, index.behaviour)
        if index.behaviour is not Behaviour.ALLOW:  # what is forbidden in one shell is so in the other
            found += [rule for text in as_written(access.runs) for rule in index.shell.find(text)]
    return found


def by_subject(case: Case, index: RuleIndex) -> list[Rule]:
    """`Tool(content)`: a pattern for the text that the call is about; for a path, in every spelling of it."""
    names, files = index.names_of(case.tool, case.mcp), subject_files(case)
    if not files:
        climbs = index.behaviour is Behaviour.ALLOW and any(".." in each.spelling.split("/") for each in case.subjects)
        return [] if climbs else index.by_subject(names, case.facts.matches)
    as_paths = index.by_subject_path(names)
    if index.behaviour is Behaviour.ALLOW:  # a text may hide where a path leads: notes/../../x
        return common([allowed_by(file.paths, as_paths) for file in files])
    found = [rule for file in files for path in file.paths for rule in as_paths.find(path)]
    return found + index.by_subject(names, case.facts.matches)


def subject_files(case: Case) -> list[FileAccess]:
    """The declared files that a call is about; none if it is about something else."""
    found: list[FileAccess] = []
    for place in case.subjects:
        files = [file for file in case.files if is_at(file, place)]
        if not files:
            return []
        found += files
    return found


def is_at(file: FileAccess, place: Place) -> bool:
    """Whether a declared file is that of a place: spelled so, in a folder of the tool's own, or resolved already."""
    spelled = file.shown == place.spelling or file.shown.endswith(f"/{place.spelling}")
    return spelled or (file.place is not None and file.place.real == place.real)


# Allow


def allowing_rules(case: Case, index: RuleIndex) -> list[Rule]:
    for file in case.files:
        if file.protected:
            return []
    if case.analysis is not None:
        cover = coverage(case)
        return [*cover.whole, *cover.alone]
    if case.read_only and (secret := [file for file in case.files if file.secret]):
        # only a rule with the path opens a secret; one of the family Read has done so already
        subject = subject_files(case)
        return by_subject(case, index) if all(file in subject for file in secret) else []
    return index.whole_tool(case.tool, case.mcp) + by_name(case, index) + by_effect(case, index)


def allowed_by_name(case: Case) -> bool:
    """Whether an allow rule names the tool, or its MCP server, and not only what its calls touch."""
    return bool(allow_rules_by_name(case))


def allow_rules_by_name(case: Case) -> list[Rule]:
    """The allow rules that name the tool or its MCP server."""
    index = case.policy.index[Behaviour.ALLOW]
    return index.whole_tool(case.tool, case.mcp) + by_name(case, index)


def by_effect(case: Case, index: RuleIndex) -> list[Rule]:
    """Allow rules about files or addresses that cover everything the call declares."""
    files, targets = case.files, case.targets
    if case.facts.access.runs is not None or case.facts.check.despite_rules:
        return []
    if targets:
        if any(target.problem for target in targets) or not all(file.clear for file in files):
            return []
        return common([index.domains.find(target, index.behaviour) for target in targets])
    changed = [file for file in files if file.effect is FileEffect.WRITE]
    if not changed and not case.read_only:
        return []
    wanted, decisive = (index.edit, changed) if changed else (index.read, files)
    if wanted.empty:
        return []
    if changed and not all(file.clear for file in files if file.effect in READING):
        return []
    return common([allowed_by(file.paths, wanted) for file in decisive])


def common(found: Sequence[list[Rule]]) -> list[Rule]:
    """The rules that are in every list."""
    if len(found) < 2:
        return found[0] if found else []
    return [rule for rule in found[0] if all(rule in others for others in found[1:])]


@record
class Coverage:
    """Which parts of a command line allow rules cover."""

    covered: bool
    whole: tuple[Rule, ...] = ()
    """Rules about the whole tool or this very line."""
    used: tuple[Rule, ...] = ()
    """Rules that cover at least one part."""
    alone: tuple[Rule, ...] = ()
    """Rules that cover every part on their own."""
    open: tuple[int, ...] = ()
    """Parts that no rule covers."""


def coverage(case: Case) -> Coverage:
    """Every part must be covered by a rule, be read-only, or be an edit that the mode accepts."""
    assert case.analysis is not None
    index = case.policy.index[Behaviour.ALLOW]
    if case.analysis.problems or not case.parts:
        return Coverage(covered=False)
    despite = case.facts.check.despite_rules
    more = case.targets or not all(file.clear for file in case.files if file.part < 0)
    whole = (*index.whole_tool(case.tool, None), *by_name(case, index))
    if not more:
        whole += tuple(index.whole_tool(BASH, None)) if case.tool != BASH else ()
        whole += tuple(index.shell.find_whole(case.analysis.command, Behaviour.ALLOW)) if not despite else ()
    by_command = not case.background
    used: dict[Rule, None] = {}
    alone: set[Rule] | None = None
    missing: list[int] = []
    at = 0
    while at < len(case.parts):
        part = case.parts[at]
        rules = []
        covers = not despite or not any(inner.conditional for inner in case.parts[at : part.until])
        if by_command and covers and part.plain and part.text and case.opened[at]:
            rules = index.shell.find(part.text, exact_only=part.exact_only, narrow=True)
        free = case.free[at]
        used.update(dict.fromkeys(rules))
        if not (free and (part.transparent or not part.text)):
            alone = set(rules) if alone is None else alone.intersection(rules)
        if not rules and not free:
            missing.append(at)
        at = part.until if rules else at + 1
    covered = bool(whole) or (bool(used) and not missing and not more)
    return Coverage(covered, whole, tuple(used), tuple(r for r in used if r in (alone or ())), tuple(missing))

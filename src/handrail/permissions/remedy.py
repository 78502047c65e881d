"""What could allow a refused call: small sets of permission updates to try, the narrowest first."""

from collections.abc import Iterator

from handrail.files.paths import FileKind
from handrail.http.web_url import WebTarget
from handrail.permissions.case import Case
from handrail.permissions.file_access import READING, FileAccess
from handrail.permissions.rules import WEB_FETCH
from handrail.permissions.suggest import suggest
from handrail.permissions.update import rule_update
from handrail.tools.permission import Update

MAX_FILES = 3
ACCEPT_EDITS: Update = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}


def possible_remedies(case: Case) -> Iterator[tuple[Update, ...]]:
    """Sets of updates that may allow the call; the caller decides again under each, and takes the first that does."""
    rules = tuple(each.rule for each in suggest(case) if each.rule)
    files = tuple(dict.fromkeys(_file_rule(file) for file in case.files if file.place and not file.clear))
    if case.only_edits:
        yield (ACCEPT_EDITS,)
    if 0 < len(files) <= MAX_FILES:
        yield (rule_update(files),)
    if case.targets and not any(target.doubt or target.problem or target.refused for target in case.targets):
        yield (rule_update(tuple(dict.fromkeys(_address_rule(target) for target in case.targets))),)
    if rules:
        yield (rule_update(rules),)
        yield (rule_update((*rules, *files[:MAX_FILES])),)


def _address_rule(target: WebTarget) -> str:
    host = f"[{target.host}]" if ":" in target.host else target.host
    return f"{WEB_FETCH}(domain:{host})" if target.ordinary else f"{WEB_FETCH}(domain:{host}:{target.port})"


def _file_rule(file: FileAccess) -> str:
    assert file.place is not None
    family = "Read" if file.effect in READING else "Edit"
    below = "/**" if file.place.kind is FileKind.FOLDER else ""
    return f"{family}(/{file.place.real}{below})"

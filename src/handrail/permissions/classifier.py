"""The built-in classifier of mode auto, which uses the shell analysis and the tool's flags, and no model."""

from handrail.permissions.case import Case
from handrail.tools.permission import Opinion, Strength, Verdict


def classify(case: Case) -> Opinion | None:
    """Allow what stays inside the working folders and is fully understood; no opinion on anything else."""
    if case.facts.destructive or case.mcp is not None or any(file.doubt for file in case.files):
        return None
    if case.only_edits and not case.access.removes:
        return yes("it edits a file in the working folders")
    if case.analysis is None or case.targets or case.access.changes_files:
        return None
    return yes("every command is known and stays in the working folders") if is_known(case) else None


def yes(reason: str) -> Opinion:
    return Opinion(Strength.CLASSIFIER, Verdict.ALLOW, "classifier", reason)


def is_known(case: Case) -> bool:
    """Whether all parts only read or edit named files; removing files is left to the user."""
    if case.analysis is None or case.analysis.problems or not case.parts or case.facts.unmet:
        return False
    if all(part.read_only or part.only_redirects for part in case.parts):
        return True
    known = (part.read_only or part.only_redirects or (part.accepted and not part.removes) for part in case.parts)
    return all(known) and not any(part.conditional for part in case.parts)

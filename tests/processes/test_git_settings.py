"""One table says which settings of a repository run programs and which are harmless, and never both."""

import pytest

from handrail.processes.git_settings import HARMLESS, PROGRAMS, RUNS_OR_FETCHES, matcher

RUNNING = {
    "external diff": ["diff.external", "diff.x.command", "diff.a.b.command"],
    "textconv": ["diff.x.textconv"],
    "filters": ["filter.x.clean", "filter.x.smudge", "filter.a.b.process"],
    "fsmonitor": ["core.fsmonitor"],
    "signatures": ["gpg.program", "gpg.ssh.program"],
    "merge drivers": ["merge.x.driver"],
    "alias": ["alias.whatchanged"],
}
ELSE = [
    "core.editor",
    "core.sshcommand",
    "include.path",
    "core.hookspath",
    "remote.x.uploadpack",
    "user.namex",
    "x.user.name",
]


@pytest.mark.parametrize("kind", PROGRAMS)
def test_what_runs_a_program_is_found_by_its_kind_and_never_harmless(kind: str) -> None:
    for name in RUNNING[kind]:
        assert [each for each in PROGRAMS if matcher(each).match(name)] == [kind]
        assert RUNS_OR_FETCHES.match(name)
        assert not HARMLESS.match(name)


@pytest.mark.parametrize("name", ELSE)
def test_what_is_not_known_is_not_harmless(name: str) -> None:
    assert not HARMLESS.match(name)

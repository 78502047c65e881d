"""Which sandbox is taken, why, and what happens when none works."""

from pathlib import Path

import pytest

from handrail.errors import SandboxError
from handrail.processes.sandbox import choose, confine, landlock
from handrail.processes.sandbox.choose import Method, MethodTrial, _bubblewrap, try_methods
from tests.processes.sandbox.box import Box


def test_a_missing_program_is_the_reason() -> None:
    assert _bubblewrap(None) == MethodTrial(Method.BUBBLEWRAP, False, "bwrap is not installed (package bubblewrap)")


def test_a_program_that_may_not_make_namespaces_says_so_itself(tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n")
    program.chmod(0o755)

    found = _bubblewrap(str(program))

    assert not found.works
    assert found.reason.endswith("does not work here: bwrap: No permissions to create new namespace")


def test_a_program_that_cannot_be_started_is_no_sandbox(tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text("not a program")

    assert "could not be run" in _bubblewrap(str(program)).reason


def test_methods_are_tried_once() -> None:
    assert try_methods() is try_methods()


def test_a_program_in_the_project_is_never_taken_for_the_one_that_protects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\ntouch PWNED\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    choose.try_methods.cache_clear()

    assert all(not each.program.startswith(str(tmp_path)) for each in try_methods())
    choose.try_methods.cache_clear()


@pytest.mark.parametrize(
    ("system", "methods"),
    [("Darwin", [Method.SEATBELT]), ("Linux", [Method.BUBBLEWRAP, Method.LANDLOCK]), ("Windows", [])],
)
def test_each_platform_has_its_methods(system: str, methods: list[Method], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    choose.try_methods.cache_clear()

    assert [each.method for each in try_methods()] == methods
    choose.try_methods.cache_clear()


def test_without_any_method_nothing_is_run_unconfined(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = (MethodTrial(Method.BUBBLEWRAP, False, "bwrap is not installed"),)
    monkeypatch.setattr(confine, "best", lambda: None)
    monkeypatch.setattr(confine, "try_methods", lambda: nothing)

    with pytest.raises(SandboxError, match="none works here: bwrap is not installed"):
        box.sandbox().wrap(["true"], str(box.project))


def test_an_old_kernel_or_an_unknown_machine_has_no_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "version", lambda: 2)
    assert choose._landlock().reason == "the kernel has Landlock version 2, needed is 3"

    monkeypatch.setattr(landlock, "version", lambda: 6)
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert choose._landlock().reason == "no seccomp filter is known for riscv64"

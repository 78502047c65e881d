"""Clusters and forges: what only reads them runs unasked where the user's own settings name them, and only there."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from handrail.tools.outcome import Status
from tests.builtin.bash.session import Session
from tests.shell.everyday import EverydayLine, judge, make_project

pytestmark = [pytest.mark.anyio, pytest.mark.needs("git")]

KUBECTL, GH = "kubectl get pods", "gh pr list"
SERVICES = {"permissions": {"readableServices": ["cluster:dev", "forge:github.com"]}}


@pytest.fixture
def project(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    return make_project(Path(os.path.realpath(tmp_path)))


async def unasked(project: Path, env: Mapping[str, str], *lines: str) -> list[str]:
    judged = await judge(project, env, [EverydayLine("", "", line) for line in lines])
    return [each.line.command for each in judged if each.unasked]


@pytest.mark.proves("X24")
async def test_what_the_settings_of_the_user_name_is_read_unasked(project: tuple[Path, dict[str, str]]) -> None:
    assert await unasked(*project, KUBECTL, "helm list", GH, "gh pr view 12") == [
        KUBECTL,
        "helm list",
        GH,
        "gh pr view 12",
    ]


async def test_what_chooses_another_service_is_asked_about(project: tuple[Path, dict[str, str]]) -> None:
    lines = [
        "kubectl get pods --context production",
        "kubectl --context=dev get pods",
        "kubectl get pods --context dev --context x",
        "helm list --kube-context production",
        "kubectl --kubeconfig ./k get pods",
        "kubectl get secrets",
        "KUBECONFIG=./k kubectl get pods",
        "touch a; kubectl get pods",
        "gh pr list -R a/b",
        "gh repo view a/b",
        "gh gist list",
        "gh pr view https://github.com/a/b/pull/1",
        "GH_HOST=x gh pr list",
        "gh api /user",
        "gh auth status",
        "glab mr list",
        "gh pr list; touch a",
        "env -u GH_PROMPT_DISABLED gh pr list",
        "gh status",
        "gh repo list",
    ]

    assert await unasked(*project, *lines) == []


def settings_of_the_project(project: Path, _home: Path) -> None:
    (project.parent / "home/.handrail/settings.json").unlink()
    for name in ("settings.json", "settings.local.json"):
        (project / ".handrail").mkdir(exist_ok=True)
        (project / ".handrail" / name).write_text(json.dumps(SERVICES))


def git_config(*words: str) -> Callable[[Path, Path], None]:
    def change(project: Path, _home: Path) -> None:
        subprocess.run(["git", "config", *words], cwd=project, check=True)

    return change


def other_context(_project: Path, home: Path) -> None:
    (home / ".kube/config").write_text("current-context: production\n")


def two_contexts(_project: Path, home: Path) -> None:
    (home / ".kube/config").write_text("current-context: dev\ncurrent-context: production\n")


@pytest.mark.proves("X24")
@pytest.mark.parametrize(
    ("change", "left"),
    [
        (settings_of_the_project, []),
        (other_context, [GH]),
        (two_contexts, [GH]),
        (git_config("remote.origin.url", "https://github.com:x@forge.example/a/b"), [KUBECTL]),
        (git_config("remote.other.url", "https://forge.example/a/b"), [KUBECTL]),
        (git_config("url.https://forge.example/.insteadOf", "git@github.com:"), [KUBECTL]),
        (git_config("remote.origin.gh-resolved", "forge.example/a/b"), [KUBECTL]),
        (git_config("diff.external", "touch marker"), [KUBECTL]),
    ],
)
async def test_another_service_than_the_one_that_is_named_is_asked_about(
    project: tuple[Path, dict[str, str]], change: Callable[[Path, Path], None], left: list[str]
) -> None:
    folder, env = project
    change(folder, Path(env["HOME"]))

    assert await unasked(folder, env, KUBECTL, GH) == left


@pytest.mark.parametrize(("name", "left"), [("KUBECONFIG", [GH]), ("GH_TOKEN", [KUBECTL]), ("GH_HOST", [KUBECTL])])
async def test_a_variable_that_chooses_the_service_is_asked_about(
    project: tuple[Path, dict[str, str]], name: str, left: list[str]
) -> None:
    folder, env = project

    assert await unasked(folder, {**env, name: "x"}, KUBECTL, GH) == left


async def test_it_runs_without_the_variables_of_the_user(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "kubectl").write_text("#!/bin/sh\nenv\n")
    (programs / "kubectl").chmod(0o755)
    env = {"PATH": f"{programs}:/usr/bin:/bin", "AWS_SECRET_ACCESS_KEY": "hunter2"}
    session = Session(tmp_path, env, readable_services=lambda: ("cluster:dev",))
    (session.home / ".kube").mkdir()
    (session.home / ".kube/config").write_text("current-context: dev\n")

    outcome = await session.bash(KUBECTL, session.rules())

    assert outcome.status is Status.OK
    assert "GH_PROMPT_DISABLED=1" in outcome.result.text
    assert "hunter2" not in outcome.result.text

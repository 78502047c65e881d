"""Worktrees of agents: the caller's repository stays as it was, no work is lost, and there is no fallback."""

import hashlib
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handrail.agents.worktrees import Worktree, add_worktree, end_worktree
from handrail.errors import ToolError
from handrail.testing.model import say, use
from tests.session.agents.test_subagents import delegate, open_agent
from tests.session.agents_model import AgentsModel

pytestmark = [pytest.mark.needs("git")]

ENV = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": "/nonexistent"}
WHO = {f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(folder: Path, *arguments: str) -> str:
    env = {**ENV, **WHO, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    allow = ("-c", "protocol.file.allow=always")
    done = subprocess.run(("git", *allow, *arguments), cwd=folder, env=env, capture_output=True, text=True, check=True)
    return done.stdout


def new_repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("one\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "b.txt").write_text("two\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def snapshot(folder: Path) -> dict[str, str]:
    """HEAD, index and every file of the tree, as bytes."""
    found = {"HEAD": git(folder, "rev-parse", "HEAD") + git(folder, "status", "--porcelain", "--branch")}
    index = folder / git(folder, "rev-parse", "--git-path", "index").strip()
    found["index"] = hashlib.sha256(index.read_bytes()).hexdigest()
    head = folder / git(folder, "rev-parse", "--git-path", "HEAD").strip()
    found["ref"] = head.read_text()
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if inside.parts[0] not in (".git", ".handrail") and path.is_file():
            found[str(inside)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def files_of(found: dict[str, str]) -> dict[str, str]:
    """The files of the repository itself."""
    return {file: digest for file, digest in found.items() if "." in file and not file.startswith("module")}


def make_dirt(folder: Path, dirt: set[str]) -> None:
    if "edit" in dirt:
        (folder / "a.txt").write_text("changed\n")
    if "stage" in dirt:
        (folder / "staged.txt").write_text("staged\n")
        git(folder, "add", "staged.txt")
    if "untracked" in dirt:
        (folder / "new file.txt").write_bytes(b"\x00new")
    if "delete" in dirt:
        (folder / "sub" / "b.txt").unlink()


def make_change(path: Path, change: str) -> None:
    if change in ("edit", "commit"):
        (path / "a.txt").write_text("by the agent\n")
    if change == "commit":
        git(path, "commit", "-q", "-a", "-m", "work")
    if change == "untracked":
        (path / "made.txt").write_text("made")


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(["plain", "with space", "d\u00e4sh-'q'"]),
    detached=st.booleans(),
    submodule=st.booleans(),
    linked=st.booleans(),
    dirt=st.sets(st.sampled_from(["edit", "stage", "untracked", "delete"])),
    change=st.sampled_from(["nothing", "edit", "commit", "untracked"]),
    deep=st.booleans(),
)
def test_the_callers_repository_is_byte_identical_and_changed_worktrees_are_kept(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    detached: bool,
    submodule: bool,
    linked: bool,
    dirt: set[str],
    change: str,
    deep: bool,
) -> None:
    world = tmp_path_factory.mktemp("world")
    folder = new_repository(world / name)
    if submodule:
        new_repository(world / "other")
        git(folder, "submodule", "--quiet", "add", str(world / "other"), "module")
        git(folder, "commit", "-q", "-m", "module")
    if linked:
        git(folder, "worktree", "add", "-q", "-b", "side", str(world / "linked tree"))
        folder = world / "linked tree"
    if detached:
        git(folder, "checkout", "-q", "--detach")
    make_dirt(folder, dirt)
    before = snapshot(folder)
    cwd = folder / "sub" if deep else folder

    made = add_worktree(cwd, folder, "agent-1", world / "state", ENV)
    assert snapshot(folder) == before
    path = Path(made.path)
    assert git(path, "rev-parse", "HEAD").strip() == made.base == git(folder, "rev-parse", "HEAD").strip()
    assert (path / "a.txt").read_text() == "one\n"
    assert Path(made.cwd) == (path / "sub" if deep else path)
    assert bool(made.patch) == bool(dirt)
    if made.patch and change == "nothing":
        git(path, "apply", made.patch)
        assert files_of(snapshot(path)) == files_of(before)
        git(path, "reset", "-q", "--hard")
        git(path, "clean", "-q", "-fd")
    make_change(path, change)

    note = end_worktree(Worktree.from_json(made.as_json()), ENV)

    assert snapshot(folder) == before
    assert path.is_dir() == (change != "nothing")
    assert (str(path) in note) == (change != "nothing")
    if change == "nothing":
        assert not (folder / ".handrail").exists()
        assert "worktree-agent-1" not in git(folder, "branch", "--list")


def test_an_outer_worktree_stays_as_long_as_one_inside_it_is_kept(tmp_path: Path) -> None:
    folder = new_repository(tmp_path / "r")
    outer = add_worktree(folder, folder, "outer", tmp_path / "state", ENV)
    inner = add_worktree(Path(outer.cwd), folder, "inner", tmp_path / "state", ENV)
    Path(inner.path, "a.txt").write_text("inner\n")

    assert inner.path in end_worktree(inner, ENV)
    assert outer.path in end_worktree(outer, ENV)
    assert Path(inner.path, "a.txt").read_text() == "inner\n"


@pytest.mark.parametrize(
    "what",
    [
        *("no repository", "no commit", "filters", "filters of a worktree", "objects that a program brings"),
        *("files elsewhere", "a link that leads out", "a link in place of the folder"),
    ],
)
def test_isolation_that_cannot_be_given_is_an_error(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "r"
    folder.mkdir()
    match what:
        case "no repository":
            pass
        case "no commit":
            git(folder, "init", "-q")
        case "filters":
            folder = new_repository(tmp_path / "f")
            git(folder, "config", "filter.x.smudge", f"touch {tmp_path}/ran")
        case "filters of a worktree":
            folder = new_repository(tmp_path / "w")
            (folder / ".git" / "info" / "attributes").write_text("* filter=x\n")
            git(folder, "config", "extensions.worktreeConfig", "true")
            git(folder, "config", "--worktree", "filter.x.smudge", f"touch {tmp_path}/ran; cat")
        case "objects that a program brings":
            folder = new_repository(tmp_path / "p")
            blob = git(folder, "rev-parse", "HEAD:a.txt").strip()
            (folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
            with (folder / ".git" / "config").open("a") as file:
                file.write(
                    f'[core]\nrepositoryformatversion = 1\n[extensions]\npartialClone = o\n[remote "o"]\n'
                    f"promisor = true\nurl = {folder}\nuploadpack = touch {tmp_path}/ran;\n"
                    f'[protocol "file"]\nallow = always\n'
                )
        case "files elsewhere":
            folder = new_repository(tmp_path / "e")
            git(folder, "config", "core.worktree", str(new_repository(tmp_path / "elsewhere")))
        case "a link that leads out":
            folder = new_repository(tmp_path / "o")
            (folder / ".handrail" / "worktrees").mkdir(parents=True)
            (folder / ".handrail" / "worktrees" / ".gitignore").symlink_to(tmp_path / "ran")
        case _:
            folder = new_repository(tmp_path / "l")
            (folder / ".handrail").symlink_to(tmp_path)
    with pytest.raises(ToolError, match="There is no worktree"):
        add_worktree(folder, folder, "agent-1", tmp_path / "state", ENV)
    assert not (tmp_path / "ran").exists()


@pytest.mark.anyio
@pytest.mark.proves("N10")
async def test_agents_in_worktrees_change_the_same_file_side_by_side(tmp_path: Path) -> None:
    folder = new_repository(tmp_path / "work")
    before = snapshot(folder)
    answers: dict[str, Any] = {
        "go": [
            [delegate(n, f"agent {n}", isolation="worktree") for n in range(4)]
            + [delegate(9, "reader", isolation="worktree", subagent_type="Explore")],
            [say("Done.")],
        ],
        "reader": [[use("r", "Glob", pattern="*.txt")], [say("Read.")]],
    }
    for n in range(4):
        answers[f"agent {n}"] = [
            [use(f"r{n}", "Read", file_path="a.txt")],
            [use(f"e{n}", "Edit", file_path="a.txt", old_string="one", new_string=f"by {n}")],
            [say(f"Agent {n}.")],
        ]
    model = AgentsModel(answers, contains=True)
    with anyio.fail_after(60):
        async with open_agent(tmp_path, model) as agent:
            assert (await agent.ask("go")).text == "Done."
    assert snapshot(folder) == before
    kept = sorted((folder / ".handrail" / "worktrees").glob("agent-*"))
    assert sorted((path / "a.txt").read_text() for path in kept) == [f"by {n}\n" for n in range(4)]
    assert model.texts("go").count("What it changed is in the worktree") == 4
    assert git(folder, "status", "--porcelain") == ""


def test_agents_that_begin_and_end_at_the_same_time_do_not_disturb_each_other(tmp_path: Path) -> None:
    folder = new_repository(tmp_path / "work")
    before = snapshot(folder)

    def begin_and_end(number: int) -> None:
        for turn in range(3):
            made = add_worktree(folder, folder, f"agent-{number}-{turn}", tmp_path / "state", ENV)
            assert end_worktree(made, ENV) == ""

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(begin_and_end, number) for number in range(4)]:
            done.result(60)
    assert snapshot(folder) == before


def test_a_folder_for_worktrees_whose_maker_was_killed_is_made_whole(tmp_path: Path) -> None:
    folder = new_repository(tmp_path / "work")
    (folder / ".handrail/worktrees").mkdir(parents=True)
    (folder / ".handrail/worktrees/.gitignore").touch()

    add_worktree(folder, folder, "agent-1", tmp_path / "state", ENV)

    assert git(folder, "status", "--porcelain") == ""


@pytest.mark.anyio
async def test_an_agent_without_its_worktree_does_not_work_at_all(tmp_path: Path) -> None:
    model = AgentsModel({"go": [[delegate(1, "never", isolation="worktree")], [say("Done.")]], "never": []})
    with anyio.fail_after(20):
        async with open_agent(tmp_path, model) as agent:
            await agent.ask("go")
    assert "this folder is in no git repository" in model.texts("go")
    assert model.requests("never") == []


@pytest.mark.anyio
async def test_files_that_rules_deny_are_not_in_the_patch_for_an_agent(tmp_path: Path) -> None:
    folder = new_repository(tmp_path / "work")
    (folder / "a.txt").write_text("changed\n")
    (folder / "keys [1].txt").write_text("s3cret\n")
    (folder / "sub" / "b.txt").rename(folder / "sub" / "key.txt")
    answers: dict[str, Any] = {
        "go": [[delegate(1, "agent 1", isolation="worktree")], [say("Done.")]],
        "agent 1": [[use("w", "Write", file_path="new.txt", content="x")], [say("Written.")]],
    }
    rules = {"permissions": {"deny": ["Read(./keys*)", "Read(./sub/key.txt)"]}}
    with anyio.fail_after(60):
        async with open_agent(tmp_path, AgentsModel(answers, contains=True), rules) as agent:
            assert (await agent.ask("go")).text == "Done."
    (patch,) = (tmp_path / "state").rglob("*.patch")
    text = patch.read_text()
    assert "+changed" in text
    assert "s3cret" not in text
    assert "key" not in text


@pytest.mark.anyio
async def test_what_rules_deny_stays_denied_from_another_folder(tmp_path: Path) -> None:
    folder = new_repository(tmp_path / "work")
    answers: dict[str, Any] = {
        "go": [
            [use("c", "Bash", command="cd sub")],
            [use("r", "Read", file_path="b.txt"), use("b", "Bash", command="cat b.txt")],
            [delegate(1, "agent 1", isolation="worktree")],
            [say("Done.")],
        ],
        "agent 1": [
            [
                use("r1", "Read", file_path=str(folder / "sub" / "b.txt")),
                use("r2", "Read", file_path=str(folder / "a.txt")),
            ],
            [use("e1", "Edit", file_path=str(folder / "a.txt"), old_string="one", new_string="changed")],
            [say("Tried.")],
        ],
    }
    rules = {"permissions": {"deny": ["Read(./sub/b.txt)", "Edit(./a.txt)"], "allow": ["Bash(cd *)"]}}
    model = AgentsModel(answers, contains=True)
    with anyio.fail_after(60):
        async with open_agent(tmp_path, model, rules) as agent:
            assert (await agent.ask("go")).text == "Done."
    said = model.texts("go") + model.texts("agent 1")
    assert said.count("the rule Read(./sub/b.txt) matches") == 3
    assert "two" not in said
    assert (folder / "a.txt").read_text() == "one\n"

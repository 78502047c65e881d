"""Nothing that a sandboxed command leaves behind runs when the user next types `git status`; sockets are closed."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handrail.processes.sandbox.choose import Method
from handrail.processes.sandbox.repositories import FolderWalk, describe, unknown_settings
from handrail.processes.sandbox.sockets import bound_sockets
from handrail.tools.outcome import Status
from tests.session.test_sandbox import World, confined_by

pytestmark = [pytest.mark.needs("bwrap")]

METHODS = pytest.mark.parametrize("method", [Method.BUBBLEWRAP, Method.LANDLOCK])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    for sandbox in made.closing:
        sandbox.close()


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    who = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, env=env, capture_output=True, text=True, check=check)
    return done.stdout


FSMONITOR = 'git init -q {0}; git -C {0} config core.fsmonitor "touch {1}; false"; echo x > {0}/f'
FILTER = (
    "git init -q {0}; git -C {0} config filter.x.clean 'touch {1}; cat'; echo '* filter=x' > {0}/.gitattributes; "
    "echo a > {0}/f; git -C {0} -c filter.x.clean=cat add .; sleep 0; echo b > {0}/f"
)
PLANTS = {
    "a file monitor": FSMONITOR,
    "a filter": FILTER,
    "an included file": "git init -q {0}; printf '[core]\\n fsmonitor = \"touch {1}; false\"\\n' > {0}/x; "
    "git -C {0} config include.path ../x; echo x > {0}/f",
    "a repository elsewhere": FSMONITOR + "; mv {0}/.git {0}/other; echo 'gitdir: other' > {0}/.git",
    "a link": FSMONITOR + "; mv {0}/.git {0}/other; ln -s other {0}/.git",
    "a bare one": FSMONITOR + "; mv {0}/.git/* {0}/; rmdir {0}/.git; git -C {0} config core.bare false; "
    "git -C {0} config core.worktree .",
    "made in the temporary folder": FSMONITOR.replace("{0}", "$TMPDIR/r") + "; mv $TMPDIR/r {0}",
    "hooks that cannot be listed": "git init -q {0}; rm -rf {0}/.git/hooks; ln -s hooks {0}/.git/hooks",
    "deep down": "mkdir -p {0}/a/b; " + FSMONITOR.replace("{0}", "{0}/a/b/c"),
}


@pytest.mark.anyio
@pytest.mark.proves("X20")
@METHODS
@pytest.mark.parametrize("plant", PLANTS)
async def test_a_repository_made_in_the_sandbox_runs_nothing_afterwards(
    plant: str, method: Method, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    confined_by(method, monkeypatch)
    (world.project / "sub").mkdir()
    git(world.project, "init", "-q")
    world.begin({"enabled": True})
    marker = world.root / "marker"
    script = PLANTS[plant].format("sub/nested", marker)

    outcome = await world.bash(world.script(f"{script}\ngit add sub\ntrue"))

    assert outcome.status is Status.OK, outcome.result.text
    assert "would run something by itself" in outcome.result.text
    assert "held-back-by-handrail" in outcome.result.text
    for folder in (world.project, *(path for path in (world.project / "sub").rglob("*") if path.is_dir())):
        if "held-back" not in str(folder):
            git(folder, "status", check=False)
    assert not marker.exists()


@pytest.mark.anyio
@pytest.mark.proves("X20")
async def test_harmless_and_older_repositories_stay_until_a_command_changes_them(world: World) -> None:
    own, source = world.project / "sub" / "own", world.project / "source"
    for folder in (own, source):
        folder.mkdir(parents=True)
        git(folder, "init", "-q")
    git(source, "commit", "-q", "--allow-empty", "-m", "x")
    git(own, "config", "core.fsmonitor", "false")
    world.begin({"enabled": True})

    cloned = await world.bash(world.script("git clone -q source sub/clone; echo x > sub/own/f"))
    assert cloned.status is Status.OK, cloned.result.text
    assert "held-back" not in cloned.result.text
    assert (world.project / "sub/clone/.git").is_dir()
    assert (own / ".git").is_dir()

    changed = await world.bash(world.script("echo 'touch x' > sub/clone/.git/hooks/post-checkout"))
    assert "its hook 'post-checkout'" in changed.result.text
    assert not (world.project / "sub/clone/.git").exists()
    assert (own / ".git").is_dir()


@pytest.mark.anyio
async def test_a_new_file_that_programs_use_by_themselves_is_reported(world: World) -> None:
    world.begin({"enabled": True})

    outcome = await world.bash(world.script("echo > mise.toml; echo > README.md"))

    assert "mise.toml' is new" in outcome.result.text
    assert "README" not in outcome.result.text


@pytest.mark.anyio
@pytest.mark.proves("X20")
async def test_sockets_of_other_programs_are_closed_unless_they_are_allowed(world: World) -> None:
    path = world.project / "app.sock"
    code = "import socket as s; s.socket(s.AF_UNIX).connect('app.sock'); print('CONNECTED')"
    line = f'python3 -c "{code}"'
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        world.begin({"enabled": True})
        refused = await world.bash(world.script(line))
        world.begin({"enabled": True, "network": {"allowUnixSockets": [str(path)]}})
        allowed = await world.bash(world.script(line))

    assert "CONNECTED" not in refused.result.text
    assert "CONNECTED" in allowed.result.text


@pytest.mark.anyio
@pytest.mark.proves("X20")
async def test_landlock_keeps_extended_attributes_of_files_outside(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    confined_by(Method.LANDLOCK, monkeypatch)
    world.begin({"enabled": True})
    outside = world.root / "outside"
    outside.write_text("x")
    code = f"import os; os.setxattr('{outside}', 'user.planted', b'1')"

    outcome = await world.bash(world.script(f'python3 -c "{code}"'))

    assert outcome.status is Status.ERROR
    assert os.listxattr(outside) == []


def test_the_table_of_sockets_is_read() -> None:
    table = (
        "Num       RefCount Protocol Flags    Type St Inode Path\n"
        "00000000948d5eda: 00000003 00000000 00000000 0001 03   548\n"
        "00000000948d5edb: 00000002 00000000 00010000 0001 01 12345 /var/a b.sock\n"
        "00000000948d5edc: 00000002 00000000 00010000 0001 01 12346 @abstract\n"
        "00000000948d5edd: 00000002 00000000 00010000 0001 01   347 /srv/x.sock\n"
    )
    assert bound_sockets(table.splitlines(keepends=True)) == ["/srv/x.sock", "/var/a b.sock"]


MARKING = ("core.fsmonitor", "diff.external", "filter.x.clean", "core.sshCommand", "core.pager", "alias.status")
QUIET = ("core.bare", "user.name", "remote.origin.url", "branch.main.merge", "core.filemode", "init.defaultBranch")


@pytest.mark.proves("X20")
@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    chosen=st.lists(st.sampled_from(MARKING + QUIET), max_size=3, unique=True),
    form=st.sampled_from(("{0}", "{1}", "; x\n{0}", "{0}\r")),
)
def test_whatever_makes_real_git_run_something_is_found(
    chosen: list[str], form: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("oracle")
    marker = folder / "marker"
    git(folder, "init", "-q", "r")
    repository = folder / "r"
    (repository / ".gitattributes").write_text("* filter=x\n")
    (repository / "f").write_text("a")
    git(repository, "add", ".")
    config = repository / ".git" / "config"
    text = config.read_text()
    for name in chosen:
        section, _, key = name.rpartition(".")
        head, _, sub = section.partition(".")
        value = f'"touch {marker}; cat"' if name in MARKING else "false"
        title = f'[{head} "{sub}"]' if sub else f"[{head}]"
        text += form.format(f"{title}\n\t{key} = {value}", f"{title} {key} = {value}") + "\n"
    config.write_text(text)
    (repository / "f").write_text("b")

    git(repository, "status", check=False)
    git(repository, "diff", check=False)

    if marker.exists():
        assert describe(str(repository / ".git")).runs
    assert list(unknown_settings("[core]\n\tbare = false\n")) == []


def test_a_walk_sees_what_changed_since_the_last_one(tmp_path: Path) -> None:
    walk, root = FolderWalk(), str(tmp_path)
    for name in ("a/b", "c"):
        (tmp_path / name).mkdir(parents=True)
    assert walk.repositories((root,)) == {}

    (tmp_path / "a/b/.git").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "c").rename(tmp_path / "d")
    (tmp_path / "d/.GIT").write_text("gitdir: x")

    assert sorted(walk.repositories((root,))) == [f"{root}/a/b/.git", f"{root}/d/.GIT"]


def test_a_folder_that_cannot_be_listed_is_told_of(tmp_path: Path) -> None:
    with ExitStack() as stack:
        fd, steps = os.open(tmp_path, os.O_RDONLY), ["x" * 250] * 20  # longer than any path may be
        for name in steps:
            stack.callback(os.close, fd)
            os.mkdir(name, dir_fd=fd)
            fd = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.mkdir(".git", dir_fd=fd)
        os.close(fd)

    found = FolderWalk().repositories((str(tmp_path),))

    assert [repository.runs for repository in found.values()] == ["what is in it cannot be listed: File name too long"]
    subprocess.run(["rm", "-rf", steps[0]], cwd=tmp_path, check=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every folder")
def test_folders_and_hooks_that_only_git_may_enter_are_told_of(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "closed/inner")
    git(tmp_path, "init", "-q", "open")
    (tmp_path / "open" / ".git" / "hooks").chmod(0o311)
    (tmp_path / "closed").chmod(0o311)

    found = FolderWalk().repositories((str(tmp_path),))

    for folder in ("closed", "open/.git/hooks"):
        (tmp_path / folder).chmod(0o755)
    assert {path.removeprefix(f"{tmp_path}/") for path, each in found.items() if each.runs} == {"closed", "open/.git"}

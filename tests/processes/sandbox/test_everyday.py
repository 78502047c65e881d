"""What people do all day works in the sandbox."""

import os
import select
import stat
from contextlib import closing
from pathlib import Path

import pytest

from handrail.errors import SandboxError
from handrail.processes.sandbox.placeholder_marks import FOLDER_MODE
from tests.processes.sandbox.box import SECRET, Box, run

pytestmark = pytest.mark.needs("bwrap")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


COMMIT = "git -c user.name=t -c user.email=t@example.invalid commit -qm"


@pytest.mark.parametrize(
    ("script", "output"),
    [
        pytest.param("cat src/main.py", "print('hello')\n", id="reading the project"),
        pytest.param("echo new > top.txt; cat top.txt", "new\n", id="new files at the top"),
        pytest.param("mkdir -p a/b && mv a src/a && ls src", "a\nmain.py\n", id="folders made and moved"),
        pytest.param("echo x > $TMPDIR/f && cat /tmp/f", "x\n", id="a temporary folder"),
        pytest.param("mktemp > /dev/null && echo ok", "ok\n", id="temporary files"),
        pytest.param("seq 3 | sort -r | head -1", "3\n", id="pipes"),
        pytest.param("bash -c 'cat <(echo a)'", "a\n", id="process substitution"),
        pytest.param("head -c 4 /dev/urandom | wc -c", "4\n", id="devices that everyone needs"),
        pytest.param("python3 src/main.py", "hello\n", id="an interpreter"),
        pytest.param("find . -name '*.py'; echo $?", "./src/main.py\n0\n", id="walking without complaints"),
        pytest.param(
            "python3 -c 'import multiprocessing as m; print(m.Lock() is not None)'", "True\n", id="shared memory"
        ),
        pytest.param(
            'python3 -c \'import socket as s; a=s.create_server(("127.0.0.1",0)); '
            "b=s.create_connection(a.getsockname()); print(1)'",
            "1\n",
            id="a server and its client, both inside",
        ),
        pytest.param("cat /etc/hostname > /dev/null && echo ok", "ok\n", id="reading the system"),
    ],
)
def test_everyday_work_works(box: Box, script: str, output: str) -> None:
    assert box.run(script).stdout == output


def test_a_command_that_fails_keeps_its_exit_code(box: Box) -> None:
    assert box.run("exit 7").returncode == 7


def test_commits_work_and_leave_nothing_else_in_the_repository(box: Box) -> None:
    box.git("init")
    before = names(box.project / ".git")

    done = box.run(
        f"git add -A && {COMMIT} first && git status --short && git checkout -q -b other && git log --format=%s"
    )

    assert done.stdout == "first\n"
    assert box.git("ls-files") == "src/main.py\n"
    assert set(names(box.project / ".git")) - set(before) == {"COMMIT_EDITMSG", "index", "logs"}
    assert names(box.project) == [".git", "src"]


def test_commits_work_in_a_linked_worktree_and_its_hooks_are_out_of_reach(box: Box) -> None:
    main = box.outside / "main"
    box.git("init", str(main))
    box.git("commit", "--allow-empty", "-m", "root", cwd=main)
    box.git("worktree", "add", str(box.project / "tree"), "-b", "side", cwd=main)
    box.project = box.project / "tree"

    done = box.run(f"echo 1 > f; git add f && {COMMIT} second; echo $?")
    tried = box.run(f"echo x > {main}/.git/hooks/pre-commit && echo ESCAPED; echo x > {main}/evil")

    assert done.stdout == "0\n"
    assert box.git("log", "--format=%s").split() == ["second", "root"]
    assert "ESCAPED" not in tried.stdout
    assert not (main / "evil").exists()


def test_a_git_file_that_points_at_a_foreign_repository_opens_nothing(box: Box) -> None:
    other = box.outside / "other"
    box.git("init", str(other))
    (other / ".git" / "worktrees" / "x").mkdir(parents=True)
    (other / ".git" / "worktrees" / "x" / "gitdir").write_text("/somewhere/else/.git\n")
    (box.project / ".git").write_text(f"gitdir: {other}/.git/worktrees/x\n")

    done = box.run(f"echo x > {other}/.git/evil && echo ESCAPED")

    assert "ESCAPED" not in done.stdout


def test_the_temporary_folder_lives_as_long_as_the_session(box: Box) -> None:
    with closing(box.sandbox()) as sandbox:
        run(sandbox, "echo kept > /tmp/note", box.project)

        assert run(sandbox, "cat /tmp/note", box.project).stdout == "kept\n"


def test_what_a_killed_program_left_behind_is_cleaned_up_by_the_next_command(box: Box) -> None:
    left = box.project / ".handrail"
    left.mkdir()
    left.chmod(FOLDER_MODE)

    assert box.run("echo ok").stdout == "ok\n"

    assert not left.exists()


def test_an_empty_folder_of_the_user_stays(box: Box) -> None:
    own = box.project / ".handrail"
    own.mkdir()

    box.run("touch .handrail/settings.json")

    assert list(own.iterdir()) == []
    assert stat.S_IMODE(own.stat().st_mode) != FOLDER_MODE


def test_a_folder_without_rights_to_write_is_no_obstacle(users_box: Box) -> None:
    os.chown(users_box.project, 0, 0)
    users_box.project.chmod(0o555)

    assert users_box.run("cat src/main.py").stdout == "print('hello')\n"


def test_a_protected_link_is_refused_because_it_could_be_replaced(box: Box) -> None:
    (box.project / "elsewhere").mkdir()
    (box.project / ".claude").symlink_to("elsewhere")

    with closing(box.sandbox()) as sandbox, pytest.raises(SandboxError, match=r"\.claude' is a link"):
        sandbox.wrap(["true"], str(box.project))

    assert names(box.project) == [".claude", "elsewhere", "src"]


def test_a_folder_that_is_hidden_cannot_be_worked_in(box: Box) -> None:
    with closing(box.sandbox()) as sandbox, pytest.raises(SandboxError, match="not visible"):
        sandbox.wrap(["true"], str(box.home / ".ssh"))


def test_settings_open_and_close_paths(box: Box) -> None:
    extra, private = box.root / "extra", box.project / "private"
    extra.mkdir()
    private.mkdir()
    (private / "key").write_text(SECRET)
    (box.project / "vendor").mkdir()
    box.section = {
        "filesystem": {
            "allowWrite": [str(extra)],
            "denyWrite": ["vendor"],
            "allowRead": ["~/notes.txt"],
            "denyRead": ["private"],
        }
    }

    done = box.run(f"echo 1 > {extra}/f; cat {extra}/f ../notes.txt; cat private/key; echo 1 > vendor/f; ls vendor")

    assert done.stdout.startswith(f"1\n{SECRET}cat: private/key: ")
    assert (extra / "f").read_text() == "1\n"
    assert list((box.project / "vendor").iterdir()) == []


def test_a_linked_gitconfig_is_still_read(box: Box) -> None:
    (box.home / "dotfiles").mkdir()
    (box.home / "dotfiles" / "gitconfig").write_text("[user]\n\tname = Ada\n")
    (box.home / ".gitconfig").symlink_to(Path("dotfiles") / "gitconfig")

    assert box.run("git config --file ../.gitconfig user.name; ls ../dotfiles").stdout.startswith("Ada\n")


def test_no_process_outlives_the_command(box: Box) -> None:
    """The whole process namespace ends with its first process, whatever was forked or given a session of its own."""
    fifo = box.project / "src" / "alive"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)

    done = box.run(
        "(setsid sh -c 'exec 9> src/alive; echo up >&9; sleep 60' > /dev/null 2>&1 &); read x < src/alive; echo $x"
    )

    assert done.stdout == "up\n"
    ears = select.poll()
    ears.register(reader, 0)
    assert ears.poll(20_000) == [(reader, select.POLLHUP)]  # no process holds the other end
    os.close(reader)

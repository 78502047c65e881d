"""Protected files that a command may write although no table says so."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.permissions.world import World

# fmt: off
NAMED = (
    "dd of={}", "dd if=a.json of={}", "gcc -o {} a.c", "zip -r {} a.json", "7z x a.7z -o{}", "patch {} p", "xz {}",
    "zstd a -o {}", "csplit a.json 1 -f {}", "mktemp -p {}", "mktemp {}/XXXX", "go build -o {}", "scp host:x {}",
    "strace -o {} ls", "git config --file {} a.b c", "git config -f {} a.b c", "tar xzf x.tgz -C {}", "mkfifo {}",
    "ffmpeg -i a {}", "sqlite3 {}", "foo of={}", "foo -o{}", "foo --out={}", "docker run -v {}:/x image", "ex {}",
    "patch {} p > log", "xxd -r a {}", "cpio -D {} -i < a",
)
HANDED = (
    "echo {} | xargs tee", "echo {} | xargs -n1 tee", "xargs tee <<< {}", "printf {} | xargs cp a.json",
    "echo a.json {} | xargs cp", "echo -o {} | xargs sort", "ls -d {} | xargs touch", "find {} | xargs tee",
    "read x <<< {}; tee $x", "echo {} | while read x; do tee \"$x\"; done", "tee \"$(echo {})\"",
    "x=$(echo {}); tee $x", "for f in $(echo {}); do tee $f; done", "set -- {}; tee \"$1\"",
    "bash -c 'tee \"$1\"' _ {}", "tee \"${{x:-{}}}\"", "cat a > \"$(echo {})\"", "f() {{ tee \"$1\"; }}; f {}",
    "echo {} | parallel tee", "echo {} | xargs -I% cp a %",
)
ORDINARY = (
    "source .venv/bin/activate && pytest", ".venv/bin/pytest -q", "sudo .venv/bin/pytest",
    "git commit -m 'x .git/config'",
    "timeout 60 .venv/bin/pytest", "xargs .venv/bin/pytest < list", "strace -o log ls", "dd if=a of=out",
    "gcc -o build/a a.c", "tar czf dist.tgz src", "zip -r out.zip src", "find . -name '*.py' | xargs sed -i s/a/b/",
    "git clone https://github.com/a/b.git", "curl -o out https://host.example/b.git", "echo out | xargs touch",
    "echo x > \"$(echo out)\"", "export X=.git/config", "ls *.log | xargs rm", "git push origin HEAD:main",
)
# fmt: on
PROTECTED = (".git/config", ".git/hooks/pre-commit", ".vscode/tasks.json", ".envrc", ".github/workflows/ci.yml")


def world(folder: Path) -> World:
    found = World(folder, rules={"allow": ["Bash"]})
    found.file(".git/config")
    return found


@pytest.mark.parametrize("command", [*NAMED, *HANDED])
def test_a_rule_for_all_commands_opens_no_protected_file(command: str, tmp_path: Path) -> None:
    assert world(tmp_path).bash(command.format(".git/config")) == "ask"


@pytest.mark.parametrize("command", ORDINARY)
def test_what_only_runs_or_mentions_a_protected_file_is_covered_by_the_rule(command: str, tmp_path: Path) -> None:
    assert world(tmp_path).bash(command) == "allow"


@given(st.sampled_from((*NAMED, *HANDED)), st.sampled_from(PROTECTED), st.sampled_from(("", "./", "src/../", "sub/")))
def test_no_way_to_name_a_protected_file_is_covered_by_a_rule(command: str, name: str, start: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert world(Path(folder)).bash(command.format(start + name)) == "ask"

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
PROGRAMS = (
    "awk '{print > \"P\"}' a", "awk '{print >> \"P\"}' a", "awk '{f=\"P\"; print>f}' a", "awk '{print | \"tee P\"}' a",
    "awk 'BEGIN{system(\"cp a P\")}'", "gawk 'BEGIN{printf \"x\" > \"P\"}'", "sed -n '1e tee P' a",
    "python -c 'open(\"P\",\"w\")'", "python3 - <<'E'\nopen('P','w')\nE", "perl -e 'open F,\">P\"'",
    "node -e 'require(\"fs\").writeFileSync(\"P\",\"\")'", "ruby -e 'File.write(\"P\",1)'", "ex -sc 'w P|q' a",
    "vim -es -c ':w P' a", "sqlite3 x '.output P'", "emacs --batch --eval '(write-file \"P\")'",
    "python3 <<< 'open(\"P\",\"w\")'",
)
PLAIN_PROGRAMS = (
    "python3 -c 'import os; [d for d in os.listdir() if d not in {\".git\", \".venv\"}]'", "awk '{print > \"out\"}' a",
    "perl -pi -e 's/a.b/c/' a.txt", "node -e 'console.log(require(\"./package.json\").version)'",
    "ssh host 'cat .bashrc'", "cat .envrc | python3 -c 'import sys; sys.stdin.read()'",
    "awk '/.envrc/ {print $1}' list", "python3 -c 'print(1)' > out",
)
HANDED = (
    "echo {} | xargs tee", "echo {} | xargs -n1 tee", "xargs tee <<< {}", "printf {} | xargs cp a.json",
    "echo a.json {} | xargs cp", "echo -o {} | xargs sort", "ls -d {} | xargs touch", "find {} | xargs tee",
    "read x <<< {}; tee $x", "echo {} | while read x; do tee \"$x\"; done", "tee \"$(echo {})\"",
    "x=$(echo {}); tee $x", "for f in $(echo {}); do tee $f; done", "set -- {}; tee \"$1\"",
    "bash -c 'tee \"$1\"' _ {}", "tee \"${{x:-{}}}\"", "cat a > \"$(echo {})\"", "f() {{ tee \"$1\"; }}; f {}",
    "echo {} | parallel tee", "echo {} | xargs -I% cp a %",
)
# The world holds .git/config, .envrc, list and src.
REACHED = (
    "for f in .e*; do tee \"$f\"; done", "for f in .g*; do tee $f/config; done", "for f in *.x .e*; do foo $f; done",
    "set -- .e*; tee \"$1\"", "ls -d .e* | xargs touch", "cp a \"$(ls -d .g*)/config\"", "parallel tee ::: .e*",
    "foo .e*", "foo .e?vrc", "dd of=.env{{rc,x}}", "gcc -o .git/{{config,x}} a.c", "cp a .env${{Z}}rc",
    "echo x > .env${{Z}}rc", "cd .g* && tee config", "cd $(ls -d .g*) && tee config", "cd .g*; cp ../a config",
    "tee /proc/self/cwd/.envrc", "echo > /dev/fd/../cwd/.envrc", "tee /dev/stdin/.envrc < .",
    "tee /dev/fd/3/.envrc 3< .", "sed -i s/a/b/ /proc/$$/cwd/.git/config",
    "gunzip .envrc.gz", "xz -d .envrc.xz", "zstd -d .envrc.zst", "bunzip2 .git/config.bz2",
    "find . -name config -exec sed -i s/a/b/ {{}} +", "find . -name config | xargs sed -i s/a/b/",
    "find . -type f | xargs sed -i s/a/b/", "find . -name .envrc -print0 | xargs -0 tee",
    "find . -maxdepth 1 -name '.e*' -exec tee {{}} \\;", "grep -rl x . | xargs sed -i s/a/b/",
    "grep -rl x .git | xargs sed -i s/a/b/", "cp -r .git x", "cp -a .git/. x", "rsync -a .git/ x", "mv .git x",
)
# What other searches list.
FOUND_NAMES = (
    "git ls-files | xargs sed -i s/a/b/", "git ls-files -z | xargs -0 sed -i s/a/b/", "sed -i s/a/b/ $(git ls-files)",
    "git ls-files '*.envrc' | xargs touch", "git ls-files src . | xargs rm", "git grep -l x | xargs sed -i s/a/b/",
    "git diff --name-only | xargs rm", "rg -l x --hidden | xargs sed -i s/a/b/", "rg -l -uu x | xargs tee",
    "rg --files -g '.e*' | xargs touch", "rg -l x .git | xargs tee", "fd -H rc | xargs tee",
    "fd -H rc -x sed -i s/a/b/", "fd -H rc -X touch", "ls -A | xargs sed -i s/a/b/", "ls -aR . | xargs -I% cp a %",
    "sed -i s/a/b/ $(grep -rl x .)",
    "for f in $(git ls-files); do sed -i s/a/b/ \"$f\"; done", "for f in $(ls -A); do echo x >> $f; done",
    "x=$(git ls-files); for f in $x; do tee $f; done", "rg -l x --hidden | while read f; do echo x >> \"$f\"; done",
    "find . -type f | while read -r f; do echo x >> \"$f\"; done", "cat a > \"$(git ls-files | head -1)\"",
    "git ls-files | parallel sed -i s/a/b/ {}",
)
FOUND_OTHERS = (
    "rg -l x | xargs sed -i s/a/b/", "rg -l x src | xargs sed -i s/a/b/", "git ls-files '*.py' | xargs sed -i s/a/b/",
    "git ls-files src | xargs touch", "fd -e py | xargs touch", "fd a -x touch", "ls | xargs touch",
    "ls -A src | xargs touch", "git ls-files | wc -l > \"$X\"", "for f in $(ls); do touch $f; done",
    "git ls-files | xargs wc -l > out", "for f in $(git ls-files); do wc -l $f; done; touch $X",
)
# Under a rule for the command that writes, what stands in a file is not known.
LISTED = (
    "xargs tee < list", "xargs -a list tee", "xargs --arg-file=list touch", "cat list | xargs tee",
    "cat list | xargs -n1 cp a", "xargs -I{{}} cp a {{}} < list", "head -1 list | xargs touch", "xargs rm < list",
    "grep x list | xargs tee", "sort list | head -1 | xargs mv a", "xargs sed -i s/a/b/ < list",
    "while read f; do tee \"$f\"; done < list", "cat list | while read -r a b; do mv \"$a\" \"$b\"; done",
    "cat list | xargs nice tee", "echo \"$(cat list)\" | xargs tee", "echo $X | xargs tee", "./gen | xargs touch",
    "xargs tee <<< \"$X\"", "read -r X < list; tee \"$X\"",
    "xargs sort < list", "cat list | xargs sort f", "cat list | xargs -I% sort %", "xargs uniq < list",
    "xargs rg foo < list", "xargs sed -n 1p < list", "xargs jq . < list", "xargs git log < list",
    "while read f; do sort $f; done < list", "xargs diff a < list", "xargs find < list",
)
KNOWN_NAMES = (
    "echo a b | xargs touch", "ls *.txt | xargs rm", "find . -name '*.py' | xargs sed -i s/a/b/",
    "grep -rl foo src | xargs sed -i s/a/b/", "rg -l foo src | xargs sed -i s/a/b/", "xargs touch <<< 'a b'",
    "find src -type f | xargs chmod 644", "for f in src/*.py; do sed -i s/a/b/ \"$f\"; done", "cp -r src x",
    "cat list | xargs black", "cat list | xargs pip install", "printf '%s\\n' a b | xargs touch", "cp *.json src/",
    "xargs sort -- < list", "echo a b | xargs sort", "find . -name '*.py' | xargs sort", "xargs -I% sort ./% < list",
    "cat list | xargs git add", "xargs grep x < list",
)
WRITERS = ("tee", "sed", "cp", "mv", "touch", "rm", "chmod", "black", "pip", "read", "xargs", "./gen",
           "sort", "uniq", "rg", "jq", "git", "diff", "find", "grep", "cat")
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
    for name in (".git/config", ".git/HEAD", ".envrc", "list"):
        found.file(name)
    return found


@pytest.mark.parametrize("command", FOUND_NAMES)
def test_a_protected_file_that_another_command_of_the_line_lists_is_asked_about(command: str, tmp_path: Path) -> None:
    assert world(tmp_path).bash(command) == "ask"


@pytest.mark.parametrize("command", FOUND_OTHERS)
def test_a_listing_without_protected_files_is_covered_by_the_rule(command: str, tmp_path: Path) -> None:
    assert world(tmp_path).bash(command) == "allow"


@pytest.mark.parametrize("command", REACHED)
def test_a_protected_file_that_a_wildcard_or_a_search_finds_is_asked_about(command: str, tmp_path: Path) -> None:
    assert world(tmp_path).bash(command.format()) == "ask"


@pytest.mark.parametrize("command", LISTED)
def test_a_rule_with_a_wildcard_covers_no_writing_to_names_that_stand_in_a_file(command: str, tmp_path: Path) -> None:
    found = world(tmp_path)
    found.rules = {"allow": [f"Bash({name} *)" for name in WRITERS]}

    assert found.bash(command.format()) == "ask"


@pytest.mark.parametrize("command", KNOWN_NAMES)
def test_a_rule_with_a_wildcard_covers_writing_to_names_that_the_line_lists(command: str, tmp_path: Path) -> None:
    found = world(tmp_path)
    found.rules = {"allow": [f"Bash({name} *)" for name in WRITERS if name != "xargs"]}

    assert found.bash(command) == "allow"


def test_a_rule_that_names_exactly_the_command_covers_names_from_a_file(tmp_path: Path) -> None:
    found = world(tmp_path)
    found.rules = {"allow": ["Bash(xargs touch)"]}

    assert found.bash("xargs touch < list") == "allow"


@pytest.mark.parametrize("command", [*NAMED, *HANDED])
def test_a_rule_for_all_commands_opens_no_protected_file(command: str, tmp_path: Path) -> None:
    assert world(tmp_path).bash(command.format(".git/config")) == "ask"


@pytest.mark.parametrize("command", PROGRAMS)
@pytest.mark.parametrize("name", [".envrc", ".git/hooks/x", "src/../.vscode/tasks.json", "~/.bashrc"])
def test_a_protected_file_that_a_program_in_the_line_names_is_asked_about(
    command: str, name: str, tmp_path: Path
) -> None:
    assert world(tmp_path).bash(command.replace("P", name)) == "ask"


@pytest.mark.parametrize("command", [*ORDINARY, *PLAIN_PROGRAMS])
def test_what_only_runs_or_mentions_a_protected_file_is_covered_by_the_rule(command: str, tmp_path: Path) -> None:
    assert world(tmp_path).bash(command) == "allow"


@given(st.sampled_from((*NAMED, *HANDED)), st.sampled_from(PROTECTED), st.sampled_from(("", "./", "src/../", "sub/")))
def test_no_way_to_name_a_protected_file_is_covered_by_a_rule(command: str, name: str, start: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert world(Path(folder)).bash(command.format(start + name)) == "ask"

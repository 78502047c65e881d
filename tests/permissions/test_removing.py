"""Removing is judged by what a command does, not by its name: root, home and project are asked about every time."""

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.cli.main import run
from handrail.permissions.facts import Facts
from handrail.tools.permission import Opinion, Strength, Verdict
from tests.forked import program
from tests.permissions.world import HOME, PROJECT, World

YES = Facts(hook=Opinion(Strength.ALLOW, Verdict.ALLOW, "hook", "yes"))
# Each removes, or moves away, the root, the home folder or the project, or something of the first two.
CRITICAL = [
    'rm -rf /proc/self/cwd/*',
    'rm -rf /dev/fd/../cwd/*',
    'rm -rf /dev/stdin/* < .',
    'rm -rf /dev/fd/3/* 3< .',
    'find /dev/stdin/ -delete < .',
    'find /dev/fd/3 -delete 3< .',
    'find ~ -delete',
    'find / -delete',
    'find -delete',
    'find . -delete',
    "find ~ -name '*.log' -delete",
    'find / -exec rm -rf {} +',
    'find ~ -exec rm {} \\;',
    'find ~ -execdir rm {} \\;',
    'find ~ -okdir rm -rf {} \\;',
    'find ~ -exec sh -c \'rm -rf "$1"\' _ {} \\;',
    "find ~ -exec sh -c 'rm -rf {}' \\;",
    'find ~ -exec mv {} /tmp/x \\;',
    'find ~ | xargs rm -rf',
    'find ~ -print0 | xargs -0 rm -rf',
    'find ~ | sort | xargs -n1 rm',
    'find ~ | grep x | xargs rm',
    'find ~ | xargs -I{} rm -rf {}',
    "find ~ | xargs -I% sh -c 'rm -rf %'",
    'find ~ | xargs sh -c \'rm -rf "$@"\' _',
    'find ~ | while read f; do rm -rf "$f"; done',
    'find ~ | parallel rm -rf',
    'find ~ | parallel rm -rf {}',
    "find ~ | parallel 'rm -rf {}'",
    'parallel rm -rf ::: ~ x',
    'ls ~ | xargs rm -rf',
    'cd / && ls | xargs rm -rf',
    'ls -A | xargs rm -rf',
    'echo ~ | xargs rm -rf',
    "printf '%s\\n' / | xargs rm -rf",
    'xargs rm -rf <<< /',
    'xargs rm -rf <<< "$HOME"',
    'mv ~ x',
    'mv / x',
    'mv -t x ~',
    'mv * ~/elsewhere',
    'mv . /tmp/x',
    'rsync --delete empty/ ~/',
    'rsync -a --delete-after empty/ /',
    'rsync -a --del empty/ .',
    'rsync -a --remove-source-files ~/ /tmp/x',
    'sudo find ~ -delete',
    'timeout 5 find ~ -delete',
    'nohup find ~ -delete',
    "sh -c 'find ~ -delete'",
    'env find ~ -delete',
    'busybox find ~ -delete',
    'fd . ~ -x rm -rf',
    'fd . ~ -X rm -rf {}',
    'fd . ~ | xargs rm -rf',
    'rm -rf $(find ~)',
    'rm -rf $(ls -d ~)',
    'rm -rf $(pwd)',
    'rm -rf "$PWD"',
    'rm -rf `echo ~`',
    'for d in / /usr; do rm -rf "$d"; done',
    'tar --remove-files -cf /tmp/x.tar ~',
    'tar -cf /tmp/x.tar --remove-files -C ~ .',
    'tar czf /tmp/x.tgz --remove-files $HOME',
    'zip -rm x.zip ~',
    '7z a -sdel x.7z ~',
    'git rm -r .',
    'git -C ~ clean -fdx',
    'cd ~ && git clean -fdx',
    'git worktree remove --force ~',
    'git mv ~ x',
    'srm -r ~',
    'trash ~',
    'npx rimraf ~',
    'find $X -delete',
    'find "$X" -delete',
    'find "$X"/ -delete',
    'find $X -exec rm -rf {} +',
    'find ~ -type f -delete',
    'find . ! -name keep -delete',
    'find . -name keep -prune -o -delete',
    'shred -u ~',
    'for ((i=0;i<1;i++)); do find ~ -delete; done',
    'docker run x find / -delete',
    '/usr/bin/find ~ -delete',
    'command find ~ -delete',
    "eval 'find ~ -delete'",
    'find ~ -depth -print -delete',
    'find ~/ -mindepth 1 -delete',
    "find ~ -maxdepth 1 -exec rm -rf {} ';'",
    'unlink ~',
    'rmdir ~',
    'find /etc -delete',
    'ls / | xargs -I{} rm -rf /{}',
    'bash -c \'find "$1" -delete\' _ ~',
    'echo "rm -rf ~" | sh',
    "bash <<< 'rm -rf ~'",
]  # fmt: skip
# The removed word comes out of something else on the line.
CARRIED = [
    'd=~; rm -rf "$d"',
    'for f in ~ ; do rm -rf $f; done',
    'for f in ~/*; do rm -rf "$f"; done',
    'f(){ rm -rf "$1"; }; f ~',
    'set -- ~; rm -rf "$@"',
    'rm -rf {~,x}',
    'while read f; do rm -rf "$f"; done < <(find ~)',
    'find ~ > list; xargs rm -rf < list',
    'find . > list; xargs rm -rf < list',
    'cat <(find ~) | xargs rm -rf',
    '$(which rm) -rf ~',
    '$(command -v rm) -rf .',
    'grep -rl keep ~ | xargs rm -f',
    'export D=~; rm -rf "$D"',
    'rm -rf ~root',
    'rm -rf ~/.[!.]*',
    'rg -l x ~ | xargs rm',
    'rg --files ~ | xargs rm',
    'rg --files . | xargs rm',
    'gio trash ~',
    'gio move ~ x',
    'rclone purge ~',
    'rclone delete ~',
    'rclone sync empty ~',
    'rclone move ~ x',
    'tmpreaper 1d ~',
    'd=x; export d=/; rm -rf "$d"',
    'd=x; f(){ d=/; }; f; rm -rf "$d"',
    "d=x; eval 'd=~'; rm -rf \"$d\"",
    'd=x; printf -v d %s ~; rm -rf "$d"',
    'd=x; read d <<< /; rm -rf "$d"',
    'g(){ cd /; }; g; rm -rf home',
    'pushd / && rm -rf home',
    'export D=/; cd "$D" && rm -rf home',
    'D=~; git -C "$D" clean -fdx',
    'git -C $HOME clean -fdx',
    'git -C ~root clean -fdx',
    'ls ~; rm -rf $_',
    'ls .; rm -rf $_',
    'ls ~; rm -rf "$X"',
    'rm -rf "${HOME%/}"',
    'rm -rf "${HOME:?}"',
    'rm -rf "${PWD%/*}"',
    'd=~/x; rm -rf "${d%/*}"',
    'rm -rf "$(dirname ~/x)"',
    "x='/ b'; rm -rf $x",
    'IFS=:; d=~:x; rm -rf $d',
    'ln -s ~ l; rm -rf l/*',
    'echo "rm -rf ~" > x.sh; sh x.sh',
    'cat > x.sh <<E\nrm -rf ~\nE\n. ./x.sh',
    'echo "rm -rf $HOME" | sh',
    'bash <(echo rm -rf ~)',
    'bash -c "$(echo rm -rf ~)"',
    "c='rm -rf'; $c ~",
    "alias x='rm -rf'; x .",
    'a=(~ x); rm -rf "${a[@]}"',
    'mapfile -t a < <(find ~); rm -rf "${a[@]}"',
    'd=~; for ((i=0; i<1; i++)); do rm -rf "$d"; done',
    "d=$(python3 -c 'import os; print(os.path.expanduser(\"~\"))'); rm -rf \"$d\"",
]  # fmt: skip
# Each removes something of the project, or nothing that can be told.
ORDINARY = [
    'rm -rf build node_modules',
    'for f in *.tmp; do rm "$f"; done',
    "for f in $(find . -name '*.orig'); do rm \"$f\"; done",
    'for d in */; do rm -rf "$d/node_modules"; done',
    'for d in packages/*; do (cd "$d" && rm -rf dist); done',
    'tmp=$(mktemp -d); cp -r . "$tmp"; ls /; rm -rf "$tmp"',
    'tmp=$(mktemp -d); trap \'rm -rf "$tmp"\' EXIT; tar xf ~/x.tgz',
    'cd /home/dev/proj && ls *.log | xargs rm',
    'cd /home/dev/proj && rm -rf "$OUT"',
    'ls && rm -rf "$BUILD"',
    'pwd; rm -rf "$BUILD"',
    'find . | wc -l; rm -rf "$X"',
    'rm -f *~',
    'rm -rf [0-9]*',
    'grep -rl foo . | xargs rm',
    "find . -name '*.o' > list; xargs rm < list",
    'while read f; do rm "$f"; done < list',
    'f=$(ls -t *.log | tail -1); rm "$f"',
    'd=~/x/build; rm -rf "$d"',
    'export D=~/x/build; rm -rf "$D"',
    'd="$HOME/.cache/foo"; rm -rf "$d"',
    'rm -rf "${BUILD_DIR:-build}"',
    'rm -rf ./{build,dist}/*',
    'pip install . && rm -rf "$TMP"',
    'clean(){ local d=$1; rm -rf "$d"; }; clean build; clean dist',
    'set -- a b; rm "$@"',
    'cut -d / -f 2 list | xargs rm',
    'for i in 1 2 3; do rm -f "log.$i"; done',
    '$PYTHON -m pytest . && rm -rf .pytest_cache',
    'for f in *.txt; do mv "$f" "${f%.txt}.md"; done',
    'for f in *.txt; do mv -- "$f" "${f// /_}"; done',
    'mv ~/Downloads/x.zip .',
    'cd "$(git rev-parse --show-toplevel)" && rm -rf build',
    'cd "$(dirname "$0")" && rm -rf build dist',
    'pushd sub && rm -rf build && popd',
    'PREFIX=/usr/local; rm -f "$PREFIX/bin/foo"',
    'echo cleaning up / && rm -rf build',
    'du -sh . && rm -rf "$CACHE"',
    'echo "make all" > x.sh; sh x.sh; rm x.sh',
    'ln -s build l; rm -rf l/*',
    "find build -name '*.o' -delete",
    "find . -name '*.pyc' -delete",
    "find . -name '*.pyc' -exec rm {} +",
    'find . -type d -name __pycache__ -exec rm -rf {} +',
    'find . -type d -name __pycache__ -prune -exec rm -rf {} \\;',
    "find . -name '*.pyc' | xargs rm",
    "find . -name '*.pyc' -print0 | xargs -0 rm -f",
    "find . \\( -name '*.pyc' -o -name '*.pyo' \\) -delete",
    'find . -empty -delete',
    'find src -delete',
    'find src -type f -exec rm {} +',
    'git clean -n',
    'git clean -fdx',
    'git clean -fd build',
    'mv a.txt b.txt',
    'mv src/a src/b dst',
    'rsync -a src/ dst/',
    'rsync -a --delete src/ dst/',
    'rsync -av --delete src/ user@host:/srv/x/',
    'rm -rf build',
    'rm -rf $X',
    'cat list | xargs rm',
    'ls *.log | xargs rm',
    'ls -t | tail -n +6 | xargs rm',
    'git rm -r --cached .',
    'git rm src/a.py',
    'git ls-files -o | xargs rm',
    'fd -e pyc -x rm',
    'fd -e pyc | xargs rm',
    'xargs rm < list',
    'xargs rm -rf <<< build',
    'rm -rf $(git rev-parse --show-toplevel)/build',
    'rm -rf "$PWD/build"',
    'rm -rf "$(pwd)/build"',
    'rm -rf "$(mktemp -d)"',
    'tar czf x.tgz --remove-files build',
    'zip -rm x.zip build',
    'git worktree remove ../wt',
    'parallel rm ::: a b',
    'find . -name x -exec mv {} dst \\;',
    'tar xzf x.tgz',
    'grep -rl foo src | xargs rm',
    'git diff --name-only | xargs rm',
    'for f in a b; do rm -rf "$f"; done',
]  # fmt: skip
PROTECTED = ["find .git -name '*.lock' -delete", "mv .git x", "rsync -a --delete x/ .git/", "find .git | xargs rm"]


def worlds(folder: Path) -> list[World]:
    return [
        World(folder, rules={"allow": ["Bash"]}),
        World(folder, mode="auto", rules={"allow": ["Bash"]}),
        World(folder, mode="bypassPermissions"),
    ]


def answers(command: str, folder: Path) -> set[str]:
    """What is decided under a rule that allows all commands, under bypass, and with a hook's yes."""
    given = {"command": command.replace(HOME, worlds(folder)[0].at(HOME))}
    return {world.bash(command) for world in worlds(folder)} | {World(folder).says("Bash", given, YES)}


@pytest.mark.proves("R3")
@pytest.mark.parametrize("command", CRITICAL)
def test_removing_what_is_critical_is_asked_about_whatever_command_does_it(command: str, tmp_path: Path) -> None:
    assert answers(command, tmp_path) == {"ask"}


@pytest.mark.proves("X11")
@pytest.mark.parametrize("command", CARRIED)
def test_removing_what_is_critical_is_asked_about_whatever_the_word_comes_out_of(command: str, tmp_path: Path) -> None:
    assert answers(command, tmp_path) == {"ask"}


@pytest.mark.proves("X11")
@pytest.mark.parametrize("command", ["rm -rf ~/pro*", "rm -rf ../pro?", "for f in ../[op]roj; do rm -rf $f; done"])
def test_a_pattern_that_matches_the_project_stands_for_it(command: str, tmp_path: Path) -> None:
    assert answers(command, tmp_path) == {"ask"}


@pytest.mark.parametrize("command", ORDINARY)
def test_removing_inside_the_project_is_allowed_as_rules_and_modes_say(command: str, tmp_path: Path) -> None:
    for name in ("build", "dst", "src"):
        (tmp_path / PROJECT[1:] / name).mkdir(parents=True)

    assert answers(command, tmp_path) == {"allow"}


@pytest.mark.parametrize("command", PROTECTED)
def test_removing_what_is_protected_is_asked_about_whatever_command_does_it(command: str, tmp_path: Path) -> None:
    (tmp_path / PROJECT[1:] / ".git").mkdir(parents=True)

    assert World(tmp_path, rules={"allow": ["Bash"]}).bash(command) == "ask"


@pytest.mark.parametrize("command", ["find src -delete", "find src -exec rm {} +", "mv src x", "rsync --del x/ src/"])
def test_a_rule_for_a_file_holds_when_its_folder_is_removed(command: str, tmp_path: Path) -> None:
    world = World(tmp_path, rules={"allow": ["Bash"], "deny": ["Edit(src/**)"]})
    world.file("src/keep.txt")

    assert world.bash(command) == "deny"


TARGETS = (
    "~",
    "~/",
    "$HOME",
    '"$HOME"',
    '"$HOME/"',
    "/",
    "//",
    "/etc",
    "/usr/",
    HOME,
    "/home/dev/../dev",
    "~/.",
    "/../",
)
REMOVERS = (
    "find {} -delete",
    "find {} -type f -delete",
    "find {} -mindepth 1 -print -delete",
    "find {} -name '*.txt' -delete",
    "find x {} -exec rm -rf {{}} +",
    "find {} -execdir rm {{}} \\;",
    "find {} -exec sh -c 'rm -r \"$1\"' _ {{}} \\;",
    "find {} -exec mv {{}} /tmp/x \\;",
    "find {} -exec sudo rm {{}} \\;",
    "find {} | xargs rm -rf",
    "find {} -print0 | xargs -0 -n 5 rm -rf",
    "find {} | sort | head -n 3 | xargs -I% rm -rf %",
    'find {} | while read -r f; do rm -rf "$f"; done',
    "find {} | parallel rm",
    "parallel rm -rf ::: {}",
    "fd . {} -x rm -rf",
    "ls -d {} | xargs rm -rf",
    "echo {} | xargs rm -rf",
    "xargs rm -rf <<< {}",
    "rm -rf $(find {})",
    "rm -rf {}",
    "rmdir {}",
    "mv {} x",
    "mv -t x a {}",
    "rsync -a --delete empty/ {}",
    "rsync --remove-source-files -a {} x",
    "tar -cf /tmp/x.tar --remove-files {}",
    "zip -rm x.zip {}",
    "git rm -rf {}",
    "git worktree remove {}",
    "shred -u {}",
    "srm {}",
)
WRAPPERS = (
    "{}", "{}; ls", "ls && {}", "( {} )", "if true; then {}; fi", "for i in 1 2; do {}; done", "x=$({})", "{} &",
)  # fmt: skip
IN_TEXT = ("sh -c {}", "bash -c {}", "sudo sh -c {}", "timeout 5 bash -c {}", "eval {}", "nohup bash -c {}",
           "bash <<< {}", "env X=1 bash -c {}", "for ((i=0; i<1; i++)); do bash -c {}; done")  # fmt: skip


@pytest.mark.proves("R3")
@given(
    target=st.sampled_from(TARGETS),
    remover=st.sampled_from(REMOVERS),
    wrapper=st.sampled_from(WRAPPERS),
    text=st.sampled_from(("", *IN_TEXT)),
)
def test_no_spelling_wrapper_or_command_removes_root_or_home_unasked(
    target: str, remover: str, wrapper: str, text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    command = wrapper.format(remover.format(target))
    command = text.format(shlex.quote(command)) if text else command

    assert answers(command, tmp_path_factory.getbasetemp()) == {"ask"}


PLACES = (
    "~", "~/", "$HOME", '"$HOME"', '"${HOME%/}"', "/", "/etc", "~root", "~/*", "~/.[!.]*", "~+", ".", '"$PWD"',
    "../proj", "{~,x}", "/{etc,usr}", '"$(echo ~)"', "`echo /`", "~/..",
)  # fmt: skip
TAKERS = (
    "rm -rf",
    "rmdir",
    "unlink",
    "shred -u",
    "trash",
    "mv -t x",
    "gio trash",
    "rclone purge",
    "sudo rm -r",
    "timeout 5 rm",
)
# Each puts a place into the words of a remover: a way in, the way on, and what the remover is given.
WAYS_IN = {
    "{place}": "{place}",
    "v={place};": '"$v"',
    "V={place} &&": "$V",
    "export v={place};": '"${{v}}"',
    "v=x; declare v={place};": '"$v"',
    "if ls; then v={place}; fi;": '"$v"',
    "fill() {{ v={place}; }}; v=x; fill;": '"$v"',
    "v=x; eval 'v={place}';": '"$v"',
    "set -- x {place};": '"$@"',
    "v=$(echo {place});": '"$v"',
    "read v <<< {place};": '"$v"',
    "read v < <(echo {place});": '"$v"',
    "printf -v v %s {place};": '"$v"',
    "mapfile -t v < <(echo {place});": '"${{v[@]}}"',
    "v=({place} x);": '"${{v[@]}}"',
    "echo {place} > list;": "$(cat list)",
    "ls -d {place} | tee list;": "$(< list)",
    "ls -d {place};": "$_",
}
WAYS_ON = (
    "{take} {word}",
    "w={word}; {take} $w",
    'export W={word}; {take} "$W"',
    'for w in x {word}; do {take} "$w"; done',
    'take() {{ {take} "$1"; }}; take {word}',
    'take() {{ local w=$1; {take} $w; }}; more() {{ take "$@"; }}; more {word}',
    'set -- {word}; {take} "$1"',
    "{take} {{{word},y}}",
    "{take} $(echo {word})",
    "echo {word} | xargs {take}",
    'echo {word} | while read -r w; do {take} "$w"; done',
    "echo {word} > names; xargs {take} < names",
    "cat <(echo {word}) | xargs {take}",
    "bash -c '{take} \"$1\"' _ {word}",
    "for ((i=0; i<1; i++)); do {take} {word}; done",
)


@pytest.mark.proves("X11")
@given(
    place=st.sampled_from(PLACES),
    take=st.sampled_from(TAKERS),
    way_in=st.sampled_from(sorted(WAYS_IN)),
    way_on=st.sampled_from(WAYS_ON),
    wrapper=st.sampled_from(WRAPPERS),
)
def test_no_way_from_a_place_to_a_remover_is_unasked(
    place: str, take: str, way_in: str, way_on: str, wrapper: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    before = "" if way_in == "{place}" else way_in.format(place=place)
    command = f"{before} " + way_on.format(take=take, word=WAYS_IN[way_in].format(place=place))

    assert answers(wrapper.format(command), tmp_path_factory.getbasetemp()) == {"ask"}


@pytest.mark.proves("X11")
@pytest.mark.parametrize(
    "command",
    [
        'd=~; rm -rf "$d"',
        'for f in ~/*; do rm -rf "$f"; done',
        'f(){ rm -rf "$1"; }; f ~',
        'export D=~; rm -rf "$D"; rm -rf {~,x}',
        'find ~ > list; xargs rm -rf < list',
        '$(which rm) -rf ~; while read f; do rm -rf "$f"; done < <(find ~)',
    ],
)  # fmt: skip
def test_a_home_folder_is_still_there_after_the_call(command: str, tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    (home / "keep").write_text("x")
    (project / "settings.json").write_text(json.dumps({"permissions": {"allow": ["Bash"]}}))

    for flags in (["--settings", "settings.json"], ["--dangerously-skip-permissions"]):
        ran = subprocess.run(
            [program(), "call", "--json", *flags, "Bash", json.dumps({"command": command})],
            cwd=project,
            env={**os.environ, "HOME": str(home), "HANDRAIL_STATE_DIR": str(tmp_path / "state"), "IS_SANDBOX": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

        assert json.loads(ran.stdout)["status"] == "denied", ran.stdout
        assert (home / "keep").read_text() == "x"


@pytest.mark.proves("R3")
def test_the_command_line_says_the_same_of_every_removing_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "settings.json").write_text(json.dumps({"permissions": {"allow": ["Bash"]}}))
    expected = dict.fromkeys(CRITICAL + CARRIED, "ask") | {"find build -name '*.o' -delete": "allow", "mv a b": "allow"}

    for command, says in expected.items():
        run(
            [
                "permissions",
                "explain",
                "--json",
                "Bash",
                json.dumps({"command": command}),
                "--settings",
                "settings.json",
            ]
        )
        assert json.loads(capsys.readouterr().out)["decision"] == says, command

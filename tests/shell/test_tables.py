"""The interpreter of table entries, shown on the entries that use each part of the format."""

import pkgutil
from importlib import import_module
from types import ModuleType

import pytest

from handrail.shell import CommandVerdict, Does, analyse, tables
from handrail.shell.tables.format import Command, OptionIndex, by_name


@pytest.mark.parametrize(
    "line",
    [
        "head -5 f", "head -n5 f", "head -n 5 f", "head --lines=5 f", "head --lines 5 f", "head -qn5 f", "head f -n 5",
        "head -- -5", "head -n -5 f", "cat -", "ls -la --color", "ls --color=auto", "ls *", 'ls "$PWD"', "grep -e a f",
        "grep -rn -A3 a src", "grep a -- -f", "printf '%s' -x", "echo --anything -n", "git --version",
        "git --no-pager log -5",
        "git log --format='%h %s' -n 3", "git log --pretty=oneline", "git diff --stat -- a", "git status -sb",
        "env cat f", "command -v x", "nice -n 5 ls", "xargs -0 wc -l", "xargs -I{} wc {}", "timeout -k 1 5 ls",
        "find . -name '*.c' -o \\( -type f ! -empty \\) -print0", "find -L a b -maxdepth 2",
        "find . -exec grep -l x {} +",
        "[ -f a -a 1 -lt 2 ]", "test -n \"$PWD\"", "[[ -d a && x == y* ]]", "sh -c 'ls | wc -l'",
    ],
)  # fmt: skip
def test_listed_forms_are_read_only(line: str) -> None:
    analysis = analyse(line)
    assert analysis.verdict is CommandVerdict.READ_ONLY, analysis.reasons


@pytest.mark.parametrize(
    "line",
    [
        "head --line=5 f", "head -j f", "head -qj f", "head -n", "cat --number=1 f", "pwd x", "ls --no-such",
        "git log --outpu=x",
        "git log --output=x", "git log --output x", "git log -pO", "git diff --no-index a b", "git diff --ext-diff",
        "git st",
        "git -c a=b log", "git -cx=y log", "git -p log", "git --exec-path=x log", "git --git-dir=x status", "git",
        "git $x",
        "git log --format --output=%x", "git log --format='%G?'", "git log --pretty=mine", "git log --format='%+GS'",
        "git log *", "git log $(ls)", 'git log "$(ls)"', "printf -v x y", "printf -vx y", "env", "env FOO=1 ls",
        "env -u A ls",
        "env -S 'ls'", "xargs", "xargs -a f wc", "xargs rm", "xargs -p wc", "xargs -I{} sh -c {}", "xargs find",
        "xargs -I{} find . {}", "find . -delete", "find . -fprint x", "find . -exec rm {} \\;", "find . -nosuch",
        "find . -execdir ls \\;", "find . -ok ls \\;", "find . $(ls)", "find *", "find . -name", "find . -exec ls",
        "find . *",
        "find -files0-from f", "timeout 5 rm x", "timeout 5", "timeout -x 5 ls", "nohup ls", "sh f", "sh",
        "sh -lc ls", "sh -c",
        "sh -c \"$(ls)\"", "sh -c 'ls > f'", "eval ls", "/bin/ls", "./ls", "[ -v x ]", "[ a -eq 1 ]", "[ $x ]",
        "test x -nosuch y",
        "head -n $(ls) f", "head -n * f", "nosuchprogram",
    ],
)  # fmt: skip
def test_unlisted_abbreviated_or_harmful_forms_are_not(line: str) -> None:
    assert analyse(line).verdict is not CommandVerdict.READ_ONLY


@pytest.mark.parametrize(
    "line", ["git log --output=f", "git diff --output f", "find . -fprint f", "find . -fprintf f x"]
)
def test_a_written_file_is_named(line: str) -> None:
    assert [str(word) for word in analyse(line).segments[0].writes] == ["f"]


def test_a_reason_names_bytes_node_and_entry() -> None:
    (reason,) = analyse("ls; git log --nope").reasons
    assert (reason.start, reason.end, reason.node, reason.entry) == (12, 18, "command", "git log")


def test_git_says_what_must_hold_outside_the_command_line() -> None:
    assert {need.name for need in analyse("git diff").requires} >= {
        "git-fsmonitor",
        "git-external-diff",
        "git-textconv",
    }


def test_a_shown_environment_is_a_secret() -> None:
    assert analyse("env").segments[0].does(Does.SECRET)


def families() -> list[ModuleType]:
    names = [module.name for module in pkgutil.iter_modules(tables.__path__) if module.name not in ("format", "index")]
    return [import_module(f"handrail.shell.tables.{name}") for name in names]


def all_entries() -> list[tuple[str, Command]]:
    found: list[tuple[str, Command]] = [item for family in families() for item in by_name(family.COMMANDS).items()]
    return found + [(f"{n} {s}", sub) for n, entry in found for s, sub in entry.subcommands.items()]


def test_every_program_of_a_family_is_registered_and_every_entry_is_well_formed() -> None:
    entries = all_entries()
    assert {name for name, _ in entries if " " not in name} == set(tables.family_of())
    for name, family in tables.family_of().items():
        assert name in by_name(import_module(f"handrail.shell.tables.{family}").COMMANDS), "run scripts/shell_index.py"
    for _, entry in entries:
        OptionIndex(entry)  # raises for an option listed twice or misspelt


@pytest.mark.parametrize("family", families(), ids=lambda family: family.__name__.rpartition(".")[2])
def test_every_program_of_a_family_has_one_source(family: ModuleType) -> None:
    named = [name for names in family.SOURCES.values() for name in names.split() if name != "*"]
    assert len(named) == len(set(named))
    known = " ".join(family.COMMANDS).split()
    assert len(known) == len(set(known)), "a program has two entries"
    assert set(named) <= set(known)
    assert set(named) == set(known) or "*" in family.SOURCES.values()

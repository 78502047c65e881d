"""Wrappers, shells and builtins: what they run is looked into at every depth, and what they change is said."""

import pytest

from handrail.shell import CommandVerdict, Does, analyse


def names(line: str) -> set[str]:
    return {segment.name for segment in analyse(line).segments}


@pytest.mark.parametrize(
    "line",
    [
        "/bin/sh -c 'rm x'", "/usr/bin/env A=1 rm x", "/usr/bin/sudo /bin/nice rm x", "./timeout 5 rm x", "sudo rm x",
        "sudo -u root -n rm x", "sudo A=1 rm x", "sudo -nu root rm x", "sudo --user=root rm x",
        "doas -u root rm x", "env A=1 B=2 rm x",
        "env -i -u A -C / rm x", "env -S 'rm x'", "nohup rm x", "timeout -s 9 5 rm x", "stdbuf -oL rm x",
        "setsid -w rm x", "ionice -c 3 rm x", "chrt -o 0 rm x",
        "flock /tmp/l rm x", "flock -n /tmp/l -c 'rm x'", "flock -c 'rm x' /tmp/l", "chroot / rm x",
        "watch -n 1 'ls; rm x'", "watch rm x", "trap 'rm x' EXIT",
        "alias ls='rm x'", "builtin rm x", "exec rm x", "exec -a ls rm x", "command -p rm x", "su -c 'rm x' root",
        "su root -c 'rm x'", "script -qc 'rm x' out",
        "ssh -p 22 host rm x", "ssh host 'ls; rm x'", "strace -f -o out rm x", "perf stat rm x", "busybox rm x",
        "xargs -n 1 rm x", "xargs -I{} rm {}",
        "find . -exec rm {} \\;", "find . -execdir rm {} +", "find . -ok rm {} \\;", "mapfile -C 'rm x' y",
        "jobs -x rm x", "eval 'ls; rm x'", "zsh -c 'rm x'",
        "sh -c 'sudo env A=1 sh -c \"rm x\"'", "timeout 5 nice sudo nohup env rm x",
        "sudo --no-such-option value rm x", "systemd-run --user rm x", "parallel rm x",
        "runuser -u root -c 'rm x'", "nsenter -t 1 -m rm x", "time sudo rm x", "coproc_ () { rm x; }",
        "if sudo rm x; then ls; fi", "for c in rm ls; do sudo $c x; done; rm y",
    ],
)  # fmt: skip
def test_the_inner_command_is_a_segment_of_its_own(line: str) -> None:
    assert "rm" in names(line)
    assert analyse(line).verdict is not CommandVerdict.READ_ONLY


@pytest.mark.parametrize(
    "line",
    [
        "nice cat a", "nice", "timeout 5 cat a", "stdbuf -oL cat a", "ionice -c 3 cat a", "command cat a",
        "builtin echo a", "exec cat a", "env cat a",
        "env TZ=UTC LC_ALL=C cat a", "env -C sub cat a", "xargs -0 wc -l", "sh -c 'cat a'",
        "bash -c 'nice cat a | wc -l'", "time -p cat a",
        "set -euo pipefail; cat a", "set -x", "set +e; cat a", "shopt -s nullglob failglob; ls",
        "export LANG=C; cat a", "export PAGER=cat",
        "wait", "jobs -l", "exit 1", "cat a || exit 1", "for x in a b; do cat \"$x\" || break; done",
        "umask", "ulimit -a", "times", "dirs",
        "GIT_PAGER=cat git log", "for f in *.py; do head -3 \"$f\"; done", "ls; [ $? -eq 0 ] && echo ok",
        "i=3; [ $i -lt 5 ] && echo ok",
    ],
)  # fmt: skip
def test_what_adds_nothing_is_as_harmless_as_what_it_runs(line: str) -> None:
    analysis = analyse(line)
    assert analysis.verdict is CommandVerdict.READ_ONLY, analysis.reasons


def test_variables_given_to_a_command_are_told() -> None:
    inner = analyse("env A=1 B='x y' ls").segments[1]
    assert [(name, word.literal) for name, word in inner.env] == [("A", "1"), ("B", "x y")]


def test_a_name_of_several_values_is_told_with_all_of_them() -> None:
    (segment,) = [s for s in analyse("for c in rm /bin/ls; do $c x; done").segments if s.argv]
    assert segment.names == ("rm", "ls")


def test_a_program_by_its_path_has_its_basename_and_no_trust() -> None:
    (segment,) = analyse("/usr/bin/ls").segments
    assert (segment.name, segment.names) == ("ls", ("ls",))
    assert segment.does(Does.UNLISTED)


@pytest.mark.parametrize(
    ("line", "cwds"),
    [
        ("git -C a log", ("a",)),
        ("git -C a -C b log", ("a/b",)),
        ("cd a && git -C .. log", ("a/..",)),
        ('git -C "$(pwd)" log', (None,)),
        ("env -C a ls", ("a",)),
    ],
)
def test_an_option_can_move_a_program_to_another_folder(line: str, cwds: tuple[str | None, ...]) -> None:
    assert analyse(line).segments[-1].cwds == cwds


def test_a_redirection_is_opened_before_the_program_moves() -> None:
    opened, program = analyse("git -C sub log < ../x").segments
    assert ([str(word) for word in opened.reads], opened.cwds) == (["../x"], (".",))
    assert program.cwds == ("sub",)


@pytest.mark.parametrize(
    ("line", "needs"),
    [
        ("find . | xargs wc -l", True),
        ("git ls-files | xargs wc -l", True),
        ("git ls-files | grep py | head -n 3 | xargs wc -l", True),
        ("wc -l *.py", True),
        ("find . -print0 | xargs -0 wc -l", False),
        ("git ls-files -z | xargs -0 cat", False),
        ("cat *.py", False),
    ],
)
def test_where_a_file_name_could_be_taken_for_more_the_caller_is_told(line: str, needs: bool) -> None:
    analysis = analyse(line)
    assert analysis.verdict is CommandVerdict.READ_ONLY
    assert ("plain-names" in {need.name for need in analysis.requires}) is needs

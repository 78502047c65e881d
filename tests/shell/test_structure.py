"""Pipelines, lists, compounds, redirections: which commands are found, where, and in which folder."""

import pytest

from handrail.shell import CommandVerdict, Segment, analyse, reads_outside


def found(line: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(segment.name, segment.path) for segment in analyse(line).segments if segment.argv]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a; b & c && d || e | f |& g\nh", [(n, ()) for n in "abcdefgh"]),
        ("! a | b; time -p c", [("a", ()), ("b", ()), ("c", ())]),
        ("(a; (b)) && { c; }", [("a", ("subshell",)), ("b", ("subshell", "subshell")), ("c", ("group",))]),
        ("if a; then b; elif c; then d; else e; fi", [(n, ("if",)) for n in "abcde"]),
        ("while a; do b; done; until c\ndo d; done", [(n, ("while",)) for n in "abcd"]),
        ("for x in 1 2; do a; done", [("a", ("for",))]),
        ("case a in b|c) d;; (e) f; esac", [("d", ("case",)), ("f", ("case",))]),
        ("f() { a; }; function g { b; }", [("a", ("function", "group")), ("b", ("function", "group"))]),
        ("echo $(a `b`) <(c)", [("b", ("$(...)", "$(...)")), ("a", ("$(...)",)), ("c", ("<(...)",)), ("echo", ())]),
        ("timeout 5 nice -n 3 a", [("timeout", ()), ("nice", ("timeout",)), ("a", ("timeout", "nice"))]),
        ("sh -c 'bash -c a'", [("sh", ()), ("bash", ("sh",)), ("a", ("sh", "bash"))]),
        ("find . -exec a {} +", [("find", ()), ("a", ("find",))]),
        ("/bin/a", [("a", ())]),
        ("eval 'a; b' c", [("eval", ()), ("a", ("eval",)), ("b", ("eval",))]),
    ],
)
def test_every_command_is_found_with_its_carriers(line: str, expected: list[tuple[str, tuple[str, ...]]]) -> None:
    assert found(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "ls &&", "ls |", "| ls", "; ls", "ls ;; ls", "(ls", "ls)", "{ ls", "()", "if ls; then fi",
        "for x in a; do done",
        "((1))", "select x in a; do ls; done", "coproc ls", "[[ a =~ b ]]", "[[ a -eq b ]]", "x=(a $b)", "a[0]=1",
        "x+=1",
        "ls {fd}>f", "cat <<E\nx", "cat <<A <<B\nA\nB", "for ((;;)); do ls; done", "case a in a) ls;& esac",
        "time -f x ls",
        "! ", "fi", "ls <> f", "ls (a)", "time",
    ],
)  # fmt: skip
def test_what_bash_refuses_or_we_do_not_read_is_not_understood(line: str) -> None:
    assert analyse(line).verdict is CommandVerdict.NOT_UNDERSTOOD


def test_a_function_is_looked_into_and_never_trusted() -> None:
    assert analyse("f() { ls; }; f").verdict is not CommandVerdict.READ_ONLY
    assert analyse("ls() { cat; }; ls").verdict is not CommandVerdict.READ_ONLY


@pytest.mark.parametrize(
    "line", ["ls 2>&1", "ls >/dev/null 2>&1", "ls 2>&-", "cat < a", "cat <<< x", "ls 1>&2", "ls &>/dev/null"]
)
def test_copies_of_descriptors_and_dev_null_are_free(line: str) -> None:
    assert analyse(line).verdict is CommandVerdict.READ_ONLY


@pytest.mark.parametrize(
    ("line", "target"),
    [
        ("ls > f", "f"), ("ls 2>>f", "f"), ("ls &> f", "f"), ("ls >| f", "f"), ("> f", "f"), ("ls >& f", "f"),
        ("{ ls; } > f", "f"), ("for x in a; do ls; done >f", "f"), ("ls >/dev/nullx", "/dev/nullx"),
        ("[[ a > b ]] > f", "f"),
        ("ls > f -l", "f"), ("cat <<E >f\nE", "f"), ("ls >/dev/null/../x", "/dev/null/../x"),
    ],
)  # fmt: skip
def test_a_redirection_is_a_write_of_its_target(line: str, target: str) -> None:
    analysis = analyse(line)
    assert analysis.verdict is CommandVerdict.NOT_READ_ONLY
    assert [str(word) for segment in analysis.segments for word in segment.writes] == [target]


def test_the_word_behind_a_redirection_target_is_an_argument() -> None:
    assert [str(word) for word in analyse("cat < a b").segments[0].argv] == ["cat", "b"]


def folders(line: str) -> dict[str, Segment]:
    return {segment.name: segment for segment in analyse(line).segments}


@pytest.mark.parametrize(
    ("line", "cwds"),
    [
        ("cd a && ls", ("a",)),
        ("cd a; ls", ("a", ".")),
        ("cd a || ls", (".",)),
        ("cd a && cd ../b && ls", ("b",)),
        ("(cd a) && ls", (".",)),
        ("cd a | cat; ls", (".",)),
        ("cd a & ls", (".", "a")),
        ("if true; then cd a; fi; ls", ("a", ".")),
        ("while true; do ls; cd a; done", (None,)),
        ("cd $(pwd) && ls", (None,)),
        ("cd - && ls", (None,)),
        ("cd && ls", (None,)),
    ],
)
def test_the_folders_a_command_may_run_in_are_followed(line: str, cwds: tuple[str | None, ...]) -> None:
    assert folders(line)["ls"].cwds == cwds


@pytest.mark.parametrize(
    "line", ["command cd / && cat etc/passwd", "eval 'cd /' && cat x", "CDPATH=/ cd etc && ls", "cd -P a && ls"]
)
def test_a_change_of_folder_that_is_not_followed_is_not_read_only(line: str) -> None:
    assert analyse(line).verdict is not CommandVerdict.READ_ONLY


@pytest.mark.parametrize(
    "line",
    [
        'n=5; head -n "$n" f',
        'for f in a b; do wc -l "$f"; done',
        'while read -r l; do echo "$l"; done < f',
        'a=b; cat "$a"',
        "echo $?",
    ],
)
def test_variables_set_on_the_line_are_known(line: str) -> None:
    assert analyse(line).verdict is CommandVerdict.READ_ONLY


@pytest.mark.parametrize(
    "line",
    [
        "echo $TOKEN", '(n=5); echo "$n"', 'n=5 | cat; echo "$n"', 'true && n=5; echo "$n"', 'n=-exec; find . "$n"',
        'if true; then n=5; fi; echo "$n"', "PATH=/x; ls", "IFS=x; ls", "http_proxy=x; ls", "LD_PRELOAD=x ls",
        "FOO=1 ls",
        'n=5 & echo "$n"', "echo $1", "echo $_", 'n=x ls; echo "$n"', 'for n in -delete; do find . "$n"; done',
        'n=a; while true; do find . "$n"; n=-delete; done', "cat f | while read -r l; do find . $l; done",
        "read PATH < f", "for PATH in /x; do ls; done", "IFS=x ls",
        "read 'x[$(ls)]' < f", "LC_ALL=../x ls", "TZ=/etc/x ls",
    ],
)  # fmt: skip
def test_variables_that_are_not_surely_ours_are_not_trusted(line: str) -> None:
    assert analyse(line).verdict is not CommandVerdict.READ_ONLY


@pytest.mark.parametrize(
    ("line", "outside"),
    [
        ("cat a ./b /w/c", []), ("cat ../x", ["../x"]), ("cat a/../../x", ["a/../../x"]), ("cat ~/x", ["~/x"]),
        ("cat /wx", ["/wx"]), ("ls", []), ("cd .. && ls", ["..", "."]), ("cd a && cat ../b", []), ("cd a; cat ../b",
        ["../b"]),
        ('cat "$PWD/a"', []), ("cat $HOME/a", ["$HOME/a"]), ("cat $OLDPWD/a", ["$OLDPWD/a"]), ("cat *.c", []),
        ("cat .*", [".*"]),
        ("cat < /etc/x", ["/etc/x"]), ("cat $(ls)", ["$(ls)"]), ("cat {a,/b}", ["{a,/b}"]), ("ls {a,b}/c{,.d}", []),
        ("cat {a,{b,c}}", ["{a,{b,c}}"]), ("cat {a,..}/x", ["{a,..}/x"]), ("cat {1..3}", ["{1..3}"]),
        ("cat {a,\"b\"}", ["{a,b}"]),
        ("find . | xargs wc", []),
        ("while IFS= read -r l; do echo \"$l\"; done", []),
        ("find . -printf /etc/x | xargs wc", ["<input>"]), ("find a -exec cat {} +", []),
        ("find .. -exec cat {} +", ["..", "../{}"]),
        ("find a -exec cat x{} \\;", ["x{}"]),
        ("find . -exec echo /etc/x \\; | xargs wc", ["<input>"]), ("time ls", []),
        ("time -p ls / | wc", ["/"]), ("x=~/a; cat \"$x\"", ["$x"]), ("cat a=~/b", ["a=~/b"]),
        ("ls --time-style=+/etc/x | xargs wc", ["<input>"]),
        ("find / | xargs wc", ["/"]), ("cat a | xargs wc", ["<input>"]), ("find . | xargs cat", []),
        ("ls | xargs cat", ["<input>"]),
        ("for f in a /b; do cat \"$f\"; done", ["$f"]), ("grep a \"$(ls)\" /etc/x", ["$(ls)", "/etc/x"]),
        ("grep /etc/x \"$(ls)\"", ["/etc/x", "$(ls)"]),
    ],
)  # fmt: skip
def test_reads_are_placed_inside_or_outside_the_workspace(line: str, outside: list[str]) -> None:
    analysis = analyse(line)
    assert analysis.verdict is CommandVerdict.READ_ONLY, analysis.reasons
    found = reads_outside(analysis, cwd="/w", roots=("/w",), home="/h")
    assert [str(word) for _, word in found] == outside

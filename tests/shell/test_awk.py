"""Programs of awk: read as tokens, compared with the instructions gawk makes of them."""

import re
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handrail.errors import UnclearError
from handrail.shell import CommandVerdict, analyse
from handrail.shell.grammars.awk import awk


def harmless(program: str) -> bool:
    try:
        return awk(program) == ()
    except UnclearError:
        return False


@pytest.mark.parametrize(
    "program",
    [
        "{print $1}", "NR==1{print; exit}", "{s+=$1} END {print s}", "/ERROR/", "length($0) > 100",
        "NR>=10 && NR<=20", '{print NR": "$0}', "$3 > 5 {print $1, $2}", "{print (a > b)}", "{print a[b > c]}",
        "BEGIN{FS=\":\"} {print $NF/2}", "{if ($1 > 3) print $2; else print \"x > y | z\"}", "!seen[$0]++",
        "{gsub(/[^/]*$/, \"\"); print}", "/[[:space:]]+$/ {n++} END{print n+0}", "{printf \"%s %d\\n\", $1, $2}",
        "{for (i=1; i<=NF; i++) c[$i]++} END{for (w in c) print c[w], w}", "function f(x) {return x*2} {print f($1)}",
        "{a = $1 / 2 / 3; print a}", "$1 ~ /a|b>c/", "{print $1\n}", "{print # comment > x | y\n}",
        "BEGIN{while ((getline l) > 0) n++; print n}", "{getline; print}", "{print length}",
        "NR%2", "{$1=\"\"; print substr($0,2)}", "{print $1 $2}", "/a/,/b/", "{print tolower($0)}", "{print \\\n $1}",
        "END{print NR}", "{x = y ? 1 : 2; print x}", "{print $(NF-1)}", "{split($0, a, /,/); print a[1]}", "{print -1}",
        "{print toupper(substr($1,1,1)) \"a\"; next}", "BEGIN{OFS=\"\\t\"} {$1=$1} 1",
        "{print NR (x)}", "{print /a/ ? 1 : 0}",
        "/[\\]]/", "{delete a[1]; print 1e5 .5}", "", "1",
    ],
)  # fmt: skip
def test_programs_that_compute_and_print_are_harmless(program: str) -> None:
    assert awk(program) == ()


@pytest.mark.parametrize(
    "program",
    [
        'BEGIN{system("id")}', 'BEGIN{system ("id")}', "BEGIN{\"id\" | getline x}", '{print > "f"}', '{print >> "f"}',
        '{print $1, $2 > "f"}', '{print(1)(2) > "f"}', '{printf "x" > "f"}', '{print (1,2) > "f"}', "{print > $1}",
        '{print | "sh"}', '{print |& "sh"}', 'BEGIN{getline < "/etc/x"}', 'BEGIN{getline x < "/etc/x"}',
        'BEGIN{while ((getline l < "f") > 0) print l}', 'BEGIN{getline a[1] < "f"}', 'BEGIN{getline $1 < "f"}',
        'BEGIN { case /1; system("id") / 2 }', 'BEGIN { x in /1; system("id") / 2 }',
        'BEGIN{print ENVIRON["HOME"]}', "BEGIN{for (k in ENVIRON) print k}", 'BEGIN{ARGV[1]="/etc/x"; ARGC=2}',
        '@load "filefuncs"', '@include "x"', 'BEGIN{f="system"; @f("id")}', 'BEGIN{print SYMTAB["x"]}',
        '{print 1,\n2 > "f"}', '{print 1 \\\n > "f"}', '{print a &&\nb > "f"}', '{print a ? b > "f" : c}',
        '{if (1) / "/; system("x") #"/ }', 'BEGIN{if (1) / 1 "/; system("x") #"}', '{x++ / 1 "/; system("x") #/"}',
        '{length / 1 "/; system("x") #/"}', '/[/]/; system("x")', '/[[:a:]/]/ || system("x")', '/[]/]/ {x = "/"}',
        '/[^]/]/; "/"', 'BEGIN{nosuch("x")}', 'BEGIN{close("x")}', "{print 'x'}", '{print "a\nb"}', '{print "a',
        "{print $1} # \\\n; x", "{print \u00e9}", "{a & b}", "/a", "{getline x y}", "{print > \"a\" \"b\"}",
        "BEGIN / x/", "{next / x/}", "\\", "`id`",
    ],
)  # fmt: skip
def test_programs_that_run_write_or_read_elsewhere_or_differ_between_awks_are_not(program: str) -> None:
    assert not harmless(program)


@pytest.mark.parametrize(
    "line",
    [
        "awk '{print $1}' f", "awk -F: '{print $1}' f", "awk -F ',' -v n=5 'NR==n' f g",
        "gawk --assign=x=1 '{print x}' f",
        "mawk '{print}' -", "awk -- '{print}' f", "awk '{print}' FS=: f", "awk --version", "ls | awk 'END{print NR}'",
        "awk --field-separator=, '{print $2}' f",
    ],
)  # fmt: skip
def test_lines_with_harmless_programs_are_read_only(line: str) -> None:
    analysis = analyse(line)
    assert analysis.verdict is CommandVerdict.READ_ONLY, analysis.reasons


@pytest.mark.parametrize(
    "line",
    [
        "awk -f x f", "awk -fx f", "awk --file=x f", "gawk -E x", "gawk --exec=x", "awk -i inplace '{print}' f",
        "gawk -l filefuncs 'BEGIN{}'", "gawk --load filefuncs 'BEGIN{}'", "gawk --include=inplace '{print}' f",
        "gawk -o '{print}' f", "gawk -ox '{print}' f", "gawk -pprof '{print}' f", "gawk -d '{print}' f",
        "gawk --dump-variables '{print}' f", "gawk --profile=x '{print}' f", "gawk -D '{print}' f",
        "gawk -e '{print 1,' -e '2 > \"f\"}' f", "awk --source='{print}' f",
        "awk --assign 'BEGIN{system(\"x\")}' '{print}'",
        "mawk -W exec x", "awk $x f", "awk \"{print $(ls)}\" f", "awk -F $(ls) '{print}' f",
        "awk -S -v x=1 '{print}'", "busybox awk '{print}'", "awk --lint '{print}' f",
    ],
)  # fmt: skip
def test_lines_that_load_write_or_hide_the_program_are_not(line: str) -> None:
    assert analyse(line).verdict is not CommandVerdict.READ_ONLY


def test_words_behind_the_program_are_files_even_if_they_look_like_options() -> None:
    reads = [str(word) for word in analyse("awk '{print}' -v /etc/x").segments[0].reads]
    assert reads == ["-v", "/etc/x"]


PARTS = st.sampled_from(
    ["{", "}", "(", ")", "print ", "printf ", '"f"', '"a/b"', " > ", " >> ", " | ", "/", "/x/", "/[/]/", "/[^/]/",
     "/[[:a:]/]/", "[", "]", "a", "b ", "$1", "NR", ";", "\n", ",", ",\n", "\\\n", "if (", "while (", "else ",
     "getline ", "getline x", "<", 'system("id")', "1", "~", "!", "&&", "?", ":", "=", "++", "length ", "length(",
     "BEGIN", "return ", "in ", "# x\n", '"', "\\/", "/ ", '" / "', ") / "]
)  # fmt: skip


@given(st.one_of(st.lists(PARTS, max_size=14).map("".join), st.text(max_size=40)))
@settings(max_examples=3 * settings().max_examples, deadline=None)
def test_any_text_gets_effects_or_a_refusal(text: str) -> None:
    with suppress(UnclearError):
        assert isinstance(awk(text), tuple)


@pytest.mark.parametrize("text", ["/[a]" * 2000, "/[[:a:]" * 1500, "((((" * 2000, '"' + "\\a" * 4000])
def test_no_text_is_slow(text: str) -> None:
    assert not harmless(text)


REDIRECTS = re.compile(rb'redir_type = "[^"]|getline_redir|builtin +: system|indirect_func|ENVIRON|ARGV|SYMTAB')
SHAPES = st.sampled_from(["BEGIN{%s}", "{%s}", "%s", "/x/{%s}", "{print %s}", "{if (%s) print}", "{x = %s; print x}"])


@pytest.mark.needs("gawk")
@given(SHAPES, st.lists(PARTS, min_size=1, max_size=7).map("".join))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_gawk_makes_no_redirection_or_call_of_what_is_called_harmless(tmp_path: Path, shape: str, part: str) -> None:
    program = shape.replace("%s", part)
    if harmless(program):
        (tmp_path / "p").write_text(program)
        # The debugger lists the instructions of the program; it runs none of them unless told to.
        done = subprocess.run(
            ["gawk", "-D", "-f", "p"], input=b"dump\n", capture_output=True, check=False, cwd=tmp_path, timeout=20
        )
        assert not REDIRECTS.search(done.stdout), program

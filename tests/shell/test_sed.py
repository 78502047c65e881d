"""Programs of sed: a closed grammar, compared with what sed itself says in its sandbox."""

import subprocess
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.errors import UnclearError
from handrail.shell import CommandVerdict, Does, analyse
from handrail.shell.grammars.sed import sed_program
from handrail.shell.model import HARMLESS


def harmless(program: str) -> bool:
    try:
        return all(effect.does in HARMLESS for effect in sed_program(program))
    except UnclearError:
        return False


@pytest.mark.parametrize(
    "program",
    [
        "p", "$p", "1,40p", "120,180p;200q", "s/a/b/", "s|http://|https://|", "s/a/b/2gpI", "=", "/a/,/b/d", "/a/!d",
        "1~2p", "0,/x/d", "/a/,+3p", "2,~4d", r"\|a|d", "1!G;h;$!d", ":a;N;$!ba;s/\\n/ /g", "/a/{p;q}", "{p}",
        "y/abc/xyz/",
        "a hello", "i\\\nhello", "c\\\ntwo\\\nlines", "$a\\  text", "l 5", "q5", "s/[^/]*$//", "s/[/]/_/",
        "s,[^,]*,_,", "# comment\np",
        "s/[[:space:]]*$//", r"s/[\/]/x/", "s/[]x]/y/", "s/a\\/w/b/", "s/a/w b/", "s/e/w/g", "n;d", "/x/I,/y/Mp",
        "s/x/y/w /dev/stdout", "b end;p;:end", "/e/b", "s/a/b/;s/c/d/", "$!N;P;D", "x;G;1!h",
        "s/.*/\"&\"/", "/^$/d", "1d;$d", "s/\\(a\\)\\(b\\)/\\2\\1/", "p # w out", "z;F", "s/x/a\\\nb/",
    ],
)  # fmt: skip
def test_programs_that_only_print_have_no_effect(program: str) -> None:
    assert sed_program(program) == ()


@pytest.mark.parametrize(
    ("program", "does"),
    [
        ("w out", Does.WRITES), ("1w out", Does.WRITES), ("W out", Does.WRITES), ("s/a/b/w out", Does.WRITES),
        ("s/a/b/gpw out", Does.WRITES), ("s/a\\/w/b/w out", Does.WRITES), ("s|x|y|we", Does.WRITES),
        ("p;w /dev/stdout/../x", Does.WRITES), ("s/a/b/w  out", Does.WRITES),
        ("/a/{w out\n}", Does.WRITES), ("y/a/b/;w out", Does.WRITES), ("e", Does.STARTS), ("1,$e", Does.STARTS),
        ("e touch x", Does.STARTS),
        ("s/a/b/e", Does.STARTS), ("s/a/b/2e", Does.STARTS), ("s/a/b/Ie", Does.STARTS), ("a x\ne id", Does.STARTS),
        ("a x\\\ny\ne id", Does.STARTS), (":a;e", Does.STARTS), ("b a;e", Does.STARTS), ("# x\ne", Does.STARTS),
        ("s/[[:alpha:]]/]/;e", Does.STARTS),
        ("s/[/]/x/;e", Does.STARTS), ("p;p;p;;;w x", Does.WRITES), ("}w x", None), ("$!{e}", Does.STARTS),
        ("/[/]/e", Does.STARTS), ("\\,a,e", Does.STARTS), ("s/a/b/ ; e", Does.STARTS), ("r /etc/x", Does.READS),
        ("R x", Does.READS), ("$r x", Does.READS),
    ],
)  # fmt: skip
def test_effects_are_found_wherever_they_stand(program: str, does: Does | None) -> None:
    if does is None:
        with pytest.raises(UnclearError):
            sed_program(program)
    else:
        assert does in {effect.does for effect in sed_program(program)}


@pytest.mark.parametrize(
    "program",
    [
        "s/a/b", "s/a", "y/a/b", "/a", "a", "a\\", "a foo\\", "k", "p p", "s/a/b/x", "v 4.2", "s/[/b/", "s/a\n/b/",
        "1,p", "sabaca", "s a b ", "a\\\\\\\nw out", "s/[[:alpha:]/]/;s/w out/x/", "s/[[:x:]/]/p;s/w out/x/",
        "s/[]/]/;s/w out/x/", "s/[^]/]/;s/w out/x/", "s/[\\]/]/;s/w out/x/", "s/[/]/;s/w out/x/", "/[/]/w out/p",
        "}}x", ":a#;e id", "b a#;e id", ":a};e", "s/a/b/w", "w", "s\u00e9a\u00e9b\u00e9", "b a b",
    ],
)  # fmt: skip
def test_what_is_not_read_or_what_seds_read_differently_is_refused(program: str) -> None:
    assert not harmless(program)


@pytest.mark.parametrize(
    "line",
    [
        "sed -n 1p f", "sed -ne p f", "sed -nE 's/(a)/\\1/p' f g", "sed -e p -e 's/w/e/' f", "sed --expression=p f",
        "sed -n -- p f", "sed p", "sed -es/a/b/ f", "sed --quiet p -", "sed -s -n '$=' a b", "sed --version",
        "cat f | sed 's/a/b/'", "sed --line-length=5 l f", "sed -u p f", "sed -z 's/\\n/,/g' f",
    ],
)  # fmt: skip
def test_lines_that_only_print_are_read_only(line: str) -> None:
    analysis = analyse(line)
    assert analysis.verdict is CommandVerdict.READ_ONLY, analysis.reasons


@pytest.mark.parametrize(
    "line",
    [
        "sed -i s/a/b/ f", "sed -i.bak s/a/b/ f", "sed -Ei s/a/b/ f", "sed -ni 1p f", "sed --in-place s/a/b/ f",
        "sed --in-place=.b p f", "sed --in-plac p f", "sed -I p f", "sed -s -i p f", "sed p f -i", "sed p -i f",
        "sed 'w out' -e p f",
        "sed -f x f", "sed -nf x f", "sed --file=x f", "sed -l 5 p f", "sed -l 'w out' p", "sed --posix p f",
        "sed -e p 'w x' -e 'w y'", "sed", "sed -n", "sed -e", "sed $x f", "sed \"s/$(ls)/x/\" f", "sed p *",
        "sed -n 1p $(ls)",
        "ls | xargs sed -n 1p", "sed -e 'a\\' -e 'w out' f", "sed --expr='w x' f", "sed -n '/x/w y' f",
        "sed --sandbox 'w x' f", "sed --debug e f", "sed -k p f", "sed -ep -i f",
    ],
)  # fmt: skip
def test_lines_that_edit_run_or_differ_between_seds_are_not(line: str) -> None:
    assert analyse(line).verdict is not CommandVerdict.READ_ONLY


def test_files_edited_in_place_are_named() -> None:
    assert "f" in [str(word) for word in analyse("sed -i s/a/b/ f").segments[0].writes]


PARTS = st.sampled_from(
    ["s", "/", "a", "b", "w", "e", "r", "out", " ", ";", "\n", "{", "}", "[", "]", "^", "\\", "|", ",", "1", "$", "!",
     "p", "y", "#", ":", "t", "i", "c", "[/]", "[^/]", "[[:alpha:]", "s/a/b/", "/x/", "g", "I", "~", "+", "q", "N", "n",
     "\\/", "]/", "W", "M", "=", "s|", "[]", "[^]"]
)  # fmt: skip
PROGRAMS = st.one_of(st.lists(PARTS, max_size=14).map("".join), st.text(max_size=30))


@given(PROGRAMS)
@settings(max_examples=3 * settings().max_examples, deadline=None)
def test_any_text_gets_effects_or_a_refusal(text: str) -> None:
    with suppress(UnclearError):
        assert isinstance(sed_program(text), tuple)


@pytest.mark.needs("sed")
@given(st.lists(PARTS, max_size=14).map("".join))
@settings(max_examples=2 * settings().max_examples, deadline=None)
def test_sed_itself_finds_nothing_to_forbid_in_what_is_called_harmless(text: str) -> None:
    try:
        harmless = sed_program(text) == ()
    except UnclearError:
        return
    if harmless:
        done = subprocess.run(["sed", "--sandbox", "-n", text], input=b"", capture_output=True, check=False, timeout=20)
        assert b"sandbox" not in done.stderr, text

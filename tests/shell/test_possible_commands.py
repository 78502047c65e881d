"""What a line that is not understood might run: more than it does, never less."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.shell import CommandVerdict, analyse
from handrail.shell.gate import MAX_BYTES
from tests.shell.corpus_report import lines

NOT_READ = "((1));"  # makes any line one that is not understood


@pytest.mark.parametrize(
    "line",
    [
        "((1)) && rm -rf x", "for ((i=0;i<3;i++)); do rm -rf x; done", "x=(a $b); rm -rf x", "[[ a =~ b ]] && rm -rf x",
        "((1)); /bin/rm -rf x", "((1)); r''m -rf x", "((1)); $'\\x72m' -rf x", "((1)); \"rm\" -rf x",
        "((1)); r\\m -rf x",
        "((1)); r\\\nm -rf x", "((1)); sudo -u root rm -rf x", "((1)); nosuchwrapper --option rm -rf x",
        "((1)); a=rm; $a -rf x",
        "((1)); a=rm; ${a} -rf x", "((1)); A=1 B=2 rm -rf x", "((1)); > out rm -rf x", "((1)); 2>&1 rm -rf x",
        "((1)); {rm,-rf,x}",
        "((1)); echo $(rm -rf x)", "((1)); echo `rm -rf x`", "((1)); echo \"$(rm -rf x)\"", "((1)); bash -c 'rm -rf x'",
        "((1)); bash -c \"bash -c 'rm -rf x'\"", "((1)); cat <(rm -rf x)", "((1)); cat <<E\n$(rm -rf x)\nE",
        "coproc rm -rf x",
        "select x in a; do rm -rf x; done", "case a in a) rm -rf x;& esac", "if ((1)); then rm -rf x; fi",
        "! rm -rf x; ((1))",
        "echo ${x:=$(rm -rf x)}", "echo 'a; rm -rf x", "((1)); time rm -rf x", "((1)); find . -exec rm -rf x \\;",
        "r\u200bm -rf x", "rm\u00a0-rf x", "((1)); eval 'rm -rf x'", "((1)); trap 'rm -rf x' EXIT",
        "((1)); xargs rm -rf x", "((1))|rm -rf x",
        "((1)); for a in rm ls; do $a -rf x; done; rm -rf x",
    ],
)  # fmt: skip
def test_a_command_in_a_line_that_is_not_understood_is_suspected(line: str) -> None:
    analysis = analyse(line)
    assert analysis.verdict is CommandVerdict.NOT_UNDERSTOOD
    assert any(words[:2] == ("rm", "-rf") for words in analysis.suspects)


def test_arguments_of_programs_that_run_nothing_are_not_suspected() -> None:
    assert not any(words[0] == "rm" for words in analyse(f"{NOT_READ} echo rm -rf x; ls rm").suspects)


def test_a_line_that_is_understood_has_no_suspects() -> None:
    assert analyse("ls | sudo rm x").suspects == ()


def test_a_line_that_is_too_long_is_still_searched() -> None:
    padded = ("a b " * MAX_BYTES)[: MAX_BYTES * 2] + "; /bin/r'm' -rf x"
    assert ("rm", "-rf", "x") in analyse(padded).suspects


def test_every_command_of_the_corpus_is_suspected_when_its_line_is_made_unreadable() -> None:
    for line in lines():
        named = {
            (s.name, *(w.literal for w in s.argv[1:2])) for s in analyse(line.command).segments if s.name and not s.path
        }
        suspected = {words[: len(name)] for words in analyse(f"{line.command}\n{NOT_READ}").suspects for name in named}
        assert {name for name in named if None not in name} <= suspected | {()}, line.command


@given(st.text(max_size=80))
def test_every_text_has_suspects_or_none_but_no_error(text: str) -> None:
    assert all(words and words[0] is not None for words in analyse(f"(( {text}").suspects)

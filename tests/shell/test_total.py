"""The analysis answers for every text, the same each time, as frozen data that can be printed."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.shell import CommandVerdict, analyse, analysis
from handrail.shell.explain import explain
from handrail.shell.json_form import analysis_json
from tests.shell.corpus_report import lines

FRAGMENTS = st.sampled_from(
    ["ls", "cat", " ", "\n", ";", "&&", "|", "(", ")", "{", "}", "$(", "`", '"', "'", "\\", "$x", "${x}", "<<E", "E",
    ">", "<",
     "if", "then", "fi", "for", "in", "do", "done", "case", "esac", "*", "~", "-", "--", "a=1", "#", "[[", "]]", "é",
     "\t", "<("]
)  # fmt: skip


@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(FRAGMENTS, max_size=30).map("".join),
        st.lists(FRAGMENTS, max_size=30).map(" ".join),
    )
)
@settings(max_examples=2 * settings().max_examples, deadline=None)
def test_every_text_gets_an_answer_that_is_no_internal_error(text: str) -> None:
    answer = analyse(text)
    assert not [reason for reason in answer.reasons if "internal error" in reason.text]
    json.dumps(analysis_json(answer))
    assert explain(answer)


# Found by `make fuzz` and by comparing with bash; each was answered wrongly once.
FOUND = {
    "echo é $'\\": CommandVerdict.NOT_UNDERSTOOD,  # an offset behind the end of a text that is not ASCII
    "ls;&>/dev/null cat": CommandVerdict.NOT_UNDERSTOOD,  # `;&` is one token
    "head -n ~{1,2} f": CommandVerdict.NOT_READ_ONLY,  # braces before the tilde: two words
}


def test_what_was_found_once_stays_right() -> None:
    assert {line: analyse(line).verdict for line in FOUND} == FOUND
    assert not [r for line in FOUND for r in analyse(line).reasons if "internal error" in r.text]


@pytest.mark.proves("G4")
def test_the_judgement_of_a_line_is_kept_for_the_same_line() -> None:
    assert analyse("cat kept | wc -l") is analyse("cat kept | wc -l")
    assert analyse("cat kept | wc -l") is not analyse("cat kept | wc  -l")


@pytest.mark.proves("R2")
def test_what_nobody_has_vouched_for_is_no_reading() -> None:
    for line in (
        "nosuchprogram",
        "ls --no-such-option",
        "cat --numbe f",
        "/bin/ls",
        "git no-such-command",
        "$x",
        "ls 'a",
    ):
        assert analyse(line).verdict is not CommandVerdict.READ_ONLY, line


def test_whatever_goes_wrong_inside_is_not_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str, name_starts: set[int]) -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(analysis, "agree", broken)
    answer = analyse("ls of-a-line-that-nobody-else-asks-for; rm x")
    assert answer.verdict is CommandVerdict.NOT_UNDERSTOOD
    assert "internal error: RuntimeError('a mistake of ours')" in answer.problems[0].text
    assert ("rm", "x") in answer.suspects


def test_no_corpus_line_ends_in_an_internal_error() -> None:
    broken = [
        line.command for line in lines() for reason in analyse(line.command).reasons if "internal error" in reason.text
    ]
    assert broken == []


@given(st.lists(FRAGMENTS, max_size=12).map(" ".join))
@settings(max_examples=2 * settings().max_examples, deadline=None)
def test_a_write_appended_to_any_line_is_never_read_only(text: str) -> None:
    for line in (f"{text}\ntouch pwned", f"{text}; touch pwned", f"{text} > f", f"echo $({text}; touch pwned)"):
        answer = analyse(line)
        hidden = "'" in text or '"' in text or "#" in text or "\\" in text or "<<E" in text or "`" in text
        assert hidden or answer.verdict is not CommandVerdict.READ_ONLY, line


def test_an_error_while_looking_for_suspects_is_no_understanding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(command: str) -> tuple[tuple[str, ...], ...]:
        raise RecursionError(command)

    monkeypatch.setattr(analysis, "possible_commands", broken)
    answer = analyse("((looking for suspects))")
    assert answer.verdict is CommandVerdict.NOT_UNDERSTOOD
    assert any("internal error" in reason.text for reason in answer.reasons)

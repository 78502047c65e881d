"""Unquoting to words, and the marks on what is not literal."""

from string import ascii_letters, digits

import pytest

from handrail.shell import CommandVerdict, PieceKind, Word, analyse
from handrail.shell.words import PLAIN


def words(line: str) -> tuple[Word, ...]:
    analysis = analyse(line)
    assert not analysis.problems, analysis.problems
    return analysis.segments[-1].argv[1:]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (r"echo a\ b 'c d'\''e' \\", ["a b", "c d'e", "\\"]),
        ('echo "a\\"b\\$c\\d" "" \'\'', ['a"b$c\\d', "", ""]),
        ("echo a\"b\"'c'd", ["abcd"]),
        (r"echo $'a\tb\x41\102\'' $'\u00e9'", ["a\tbAB'", "é"]),
        ('echo \'$x\' \\$x "\\$x" a$ "$"', ["$x", "$x", "$x", "a$", "$"]),
        ("echo {} a{b}c HEAD@{1} '{a,b}' \"{a,b}\" {a,b", ["{}", "a{b}c", "HEAD@{1}", "{a,b}", "{a,b}", "{a,b"]),
        ("echo a#b # c", ["a#b"]),
        ("echo [ a] x=1 ! }", ["[", "a]", "x=1", "!", "}"]),
        ("echo é'ü'→", ["éü→"]),
    ],
)
def test_literal_words_are_unquoted_exactly(line: str, expected: list[str]) -> None:
    assert [word.literal for word in words(line)] == expected


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("$?", PieceKind.PARAMETER), ('"$PWD"', PieceKind.PARAMETER), ("${PWD}", PieceKind.PARAMETER),
        ("${#PWD}", PieceKind.PARAMETER), ("${PWD%/*}", PieceKind.PARAMETER), ("$(ls)", PieceKind.SUBSTITUTION),
        ("`ls`", PieceKind.SUBSTITUTION), ("<(ls)", PieceKind.PROCESS), ("*.c", PieceKind.GLOB),
        ("a?", PieceKind.GLOB), ("[ab]", PieceKind.GLOB), ("{a,b}", PieceKind.BRACE), ("{1..5}", PieceKind.BRACE),
        ("~", PieceKind.TILDE), ("~root/x", PieceKind.TILDE), ("$((1+2))", PieceKind.ARITHMETIC),
    ],
)  # fmt: skip
def test_what_is_not_literal_is_marked(word: str, kind: PieceKind) -> None:
    (found,) = words(f"echo {word}")
    assert found.literal is None
    assert kind in {piece.kind for piece in found.pieces}


@pytest.mark.parametrize(
    "word",
    [
        "${x:=a}", "${!x}", "${x@P}", "${x:?a}", "${ ls;}", "${x[1]}", "${x:-$(ls)}", "${x:-`ls`}", '${x:-"a"}', "$[1]",
        '$"a"', "$((x))", "$((a[0]))", "$((`ls`))", ">(ls)", "a<(ls)", "'a", '"a', "$'a", "`a", "`a\\`b`", "$(ls",
        "a\\",
        "a(b)", "@(a|b)", "x=(a)", "$'\\0'", "$'\\cA'",
    ],
)  # fmt: skip
def test_forms_outside_the_closed_set_are_not_understood(word: str) -> None:
    assert analyse(f"echo {word}").verdict is CommandVerdict.NOT_UNDERSTOOD


def test_a_brace_or_substitution_hides_no_command() -> None:
    for line in [
        "echo {a,$(touch x)}",
        'echo "a$(touch x)"',
        "echo ~$(touch x)",
        "cat <<E\n`touch x`\nE",
        "a=$(touch x)",
    ]:
        assert "touch" in {segment.name for segment in analyse(line).segments}, line


@pytest.mark.parametrize(
    ("line", "may_be_option"),
    [
        ("ls *", True), ("ls */", True), ("ls ./*", False), ("ls src/*.py", False), ("ls -- *", True), ('ls "$PWD"',
        True),
        ("ls a$?", False), ("ls a$PWD", True), ('ls "a$?"', False), ("ls ~", False), ("ls {a,b}", True),
        ("ls <(ls)", False),
    ],
)  # fmt: skip
def test_a_word_may_be_an_option_unless_its_beginning_is_known(line: str, may_be_option: bool) -> None:
    assert words(line)[-1].may_be_option is may_be_option


def test_runs_taken_whole_hold_no_character_the_shell_knows() -> None:
    taken = {chr(code) for code in range(128) if PLAIN.fullmatch(chr(code))}
    assert taken == set(ascii_letters + digits + "_:=@%+^-")


def test_byte_ranges_count_bytes_of_the_text() -> None:
    (first, second) = words("echo 'é' $?")
    text = analyse("echo 'é' $?").text.encode()
    assert text[first.start : first.end].decode() == "'é'"
    assert text[second.start : second.end].decode() == "$?"

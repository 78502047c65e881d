"""What never reaches the parser, and how continued lines are joined."""

import pytest

from handrail.errors import UnclearError
from handrail.shell import CommandVerdict, analyse
from handrail.shell.gate import MAX_BYTES, check, join_lines

INVISIBLE = {
    "NUL": "\0", "carriage return": "\r", "backspace": "\b", "escape": "\x1b", "vertical tab": "\v", "form feed": "\f",
    "delete": "\x7f", "next line": "\x85", "no-break space": "\u00a0", "soft hyphen": "\u00ad", "BOM": "\ufeff",
    "zero width space": "\u200b", "right-to-left override": "\u202e", "line separator": "\u2028",
    "ideographic space": "\u3000", "hangul filler": "\u3164", "braille blank": "\u2800", "tag": "\U000e0072",
    "variation selector": "\ufe0f", "lone surrogate": "\ud800", "private use": "\ue000", "joiner": "\u034f",
}  # fmt: skip


@pytest.mark.parametrize("char", INVISIBLE.values(), ids=INVISIBLE.keys())
@pytest.mark.parametrize("line", ["ls{}", "echo 'a{}b'", "echo a # {}"], ids=["word", "quoted", "comment"])
def test_a_character_nobody_can_see_is_not_understood_wherever_it_stands(line: str, char: str) -> None:
    assert analyse(line.format(char)).verdict is CommandVerdict.NOT_UNDERSTOOD


def test_ordinary_text_of_any_language_passes() -> None:
    check("cat docs/日本語.md; echo 'ünï → ✓ é\u0301'\n\t# Ω")


def test_a_line_longer_than_the_cap_is_not_understood() -> None:
    assert analyse("ls " + "a" * MAX_BYTES).verdict is CommandVerdict.NOT_UNDERSTOOD
    assert analyse("ls " + "a" * (MAX_BYTES - 3)).verdict is CommandVerdict.READ_ONLY


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("r\\\nm -rf x", "rm -rf x"),
        ("ls \\\n -la", "ls  -la"),
        ("echo 'a\\\nb'", "echo 'a\\\nb'"),
        ('echo "a\\\nb"', 'echo "ab"'),
        ("echo \"it's\" \\\n 'x\\\n'", "echo \"it's\"  'x\\\n'"),
        ("echo \\\\\nls", "echo \\\\\nls"),
        ('echo "\\\\\n"', 'echo "\\\\\n"'),
        ("echo \\' \\\n'a'", "echo \\' 'a'"),
    ],
)
def test_continued_lines_are_joined_as_the_shell_does(text: str, joined: str) -> None:
    assert join_lines(text) == joined


@pytest.mark.parametrize(
    "text", ["cat <<E\na\\\nE", "echo `a\\\nb`", "ls # a\\\nb", "echo $'a\\\nb'", "echo $(a \\\n b)"]
)
def test_continued_lines_that_depend_on_more_than_quotes_are_refused(text: str) -> None:
    with pytest.raises(UnclearError):
        join_lines(text)

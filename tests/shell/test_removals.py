"""What a command line removes, followed to where its words come from."""

import pytest

from handrail.shell.analysis import analyse
from handrail.shell.removals import possible_removals, removals


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rm -rf a b", {("a", True), ("b", True)}),
        ("mv a b c", {("a", True), ("b", True)}),
        ("find a b -delete", {("a", True), ("b", True)}),
        ("find a -name '*.o' -delete", {("a", False)}),
        ("find a ! -name '*.o' -delete", {("a", True)}),
        ("find a -name x -o -delete", {("a", True)}),
        ("find a '(' -name x -o -name y ')' -delete", {("a", False)}),
        ("find a -path 'a/*' -delete", {("a", True)}),
        ("rsync -a --delete a/ b/", {("b/", True)}),
        ("rsync -a a/ b/", set()),
        ("git rm --cached a", set()),
        ("git clean -fd a", {("a", False)}),
        ("git clean -n a", set()),
        ("cp a b", set()),
        ("truncate -s 0 a", set()),
    ],
)
def test_the_words_of_a_command_say_what_it_removes(line: str, expected: set[tuple[str, bool]]) -> None:
    found = {(str(removal.word), removal.whole) for _, removal in removals(analyse(line))}

    assert found == expected


@pytest.mark.parametrize(
    ("line", "source"),
    [
        ("find a | xargs rm", ("a", True)),
        ("find a | grep x | xargs rm", ("a", False)),
        ("ls a | sort | xargs -I% rm %", ("a", True)),
        ("echo a | xargs rm", ("a", True)),
        ("xargs rm <<< a", ("a", True)),
        ("rm $(find a)", ("a", True)),
        ("find a -exec sh -c 'rm \"$1\"' _ {} +", ("a", True)),
        ('find a | while read -r f; do rm "$f"; done', ("a", True)),
        ("fd . a -x rm", ("a", True)),
        ("parallel rm ::: a", ("a", True)),
        ("find $X -delete", (".", True)),
    ],
)
def test_a_word_is_followed_to_the_command_that_prints_it(line: str, source: tuple[str, bool]) -> None:
    found = {(str(removal.word), removal.whole) for _, removal in removals(analyse(line))}

    assert source in found


def test_a_line_that_is_not_understood_may_remove_what_its_commands_print() -> None:
    analysis = analyse("for ((i=0; i<1; i++)); do find a | xargs rm; done")

    assert "a" in {str(removal.word) for removal in possible_removals(analysis)}

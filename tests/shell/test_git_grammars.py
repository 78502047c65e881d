"""The small languages inside git's words: pretty formats, fields of refs, settings, revisions and pathspecs."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.errors import UnclearError
from handrail.shell.grammars import git
from handrail.shell.model import Piece, PieceKind, Word, literal_word

PIECES = st.lists(
    st.sampled_from(
        [*"%G?+-: ()<>|nhsxCG[]{}.,/!^=a0*", "%(", "trailers", "signature", "refname", "format:", ":(top)"]
    ),
    max_size=30,
).map("".join)
TEXTS = st.one_of(PIECES, st.text(max_size=40))


@pytest.mark.parametrize(
    "text",
    ["", "oneline", "fuller", "%h %s", "format:%H%n%an <%ae>%n%ad%n%B", "tformat:%C(auto)%h%d %s", "%Cred%h%Creset",
     "%<(20,trunc)%an%>>(10)%ar%>|(80)%s", "%x09%x00", "%w(80,2,2)%b", "%+b%-n% d", "100%% %s", "%gD %gs",
     "%(trailers:key=Reviewed-by,separator=%x2C)", "%(describe:tags)", "%(decorate:prefix=,suffix=)"],
)  # fmt: skip
def test_known_formats_are_read(text: str) -> None:
    assert git.pretty(text) == ()


@pytest.mark.parametrize(
    "text",
    ["mine", "%G?", "%GG", "%h%GS", "%+GK", "%-GF", "% GP", "%%%G?", "format:%GT", "tformat:%x0%G?", "%C(%G?)", "%q",
     "%(signature)", "%", "%a", "%(trailers", "onelin", "ONELINE", "format", "%w(%G?)", "%<(%G?)"],
)  # fmt: skip
def test_signatures_and_unknown_formats_are_refused(text: str) -> None:
    with pytest.raises(UnclearError):
        git.pretty(text)


@given(TEXTS)
def test_a_format_with_a_signature_in_it_is_never_read(text: str) -> None:
    try:
        git.pretty(text)
    except UnclearError:
        return
    # What git itself would take for a signature: %G after an even number of percent signs and an optional modifier.
    assert not re.search(r"(?<!%)(?:%%)*%[-+ ]?G", text)


@pytest.mark.parametrize(
    "text",
    ["%(refname:short)", "%(if)%(HEAD)%(then)*%(end) %(refname)", "-committerdate", "version:refname", "-v:refname",
     "%(*objectname) %(contents:lines=3)", "refname:lstrip=2", "%(color:red)x", "%(align:20,left)a%(end)"],
)  # fmt: skip
def test_known_fields_are_read(text: str) -> None:
    assert git.ref_format(text) == ()


@pytest.mark.parametrize(
    "text",
    ["%(signature)", "%(signature:key)", "%(*signature)", "signature", "-signature:grade", "%(if)%(signature)%(end)",
     "%(refname", "nosuch", "%(nosuch)", "%((signature))", "", "%(refname:%(signature))"],
)  # fmt: skip
def test_other_fields_are_refused(text: str) -> None:
    with pytest.raises(UnclearError):
        git.ref_format(text)


@given(TEXTS)
def test_a_field_of_signatures_is_never_read(text: str) -> None:
    try:
        git.ref_format(text)
    except UnclearError:
        return
    assert "%(signature" not in text
    assert "%(*signature" not in text


@given(st.from_regex(r"[a-zA-Z]{1,10}(\.[a-zA-Z]{1,10}){1,2}(=[ -~]{0,10})?", fullmatch=True))
def test_a_setting_is_read_only_with_a_value_and_without_a_path(text: str) -> None:
    try:
        git.setting(text)
    except UnclearError:
        return
    assert "=" in text
    assert "/" not in text or text.lower() == "core.hookspath=/dev/null"


def test_settings_cannot_be_smuggled_past_the_end() -> None:
    for text in (
        "color.ui=never\nx",
        "core.pager=cat;id",
        "core.pager=cat\n",
        "color.ui=a\ncore.pager=x",
        "diff.external= ",
    ):
        with pytest.raises(UnclearError):
            git.setting(text)


@given(st.lists(TEXTS, max_size=4))
def test_every_list_of_operands_is_read_or_refused(texts: list[str]) -> None:
    try:
        effects = git.pathspec(tuple(literal_word(text) for text in texts))
    except UnclearError:
        return
    plain = [text for text in texts if ":" not in text]
    assert set(plain) <= {str(effect.word) for effect in effects}


def test_a_word_that_is_not_known_is_read_as_it_stands() -> None:
    glob = Word((Piece(PieceKind.LITERAL, "src/"), Piece(PieceKind.GLOB, "*.py")))
    (effect,) = git.pathspec((glob,))
    assert effect.word is glob
    with pytest.raises(UnclearError):
        git.pathspec((Word((Piece(PieceKind.LITERAL, "HEAD:"), Piece(PieceKind.GLOB, "*"))),))


def test_long_texts_are_read_quickly() -> None:
    long = (
        "%" * 5_001,
        "%(" * 3_000,
        "%<(" * 2_000,
        "%C(" * 2_000 + ")" * 2_000,
        ":(" + "a," * 4_000,
        "%(trailers:" * 900,
    )
    for text in long:
        for read in (git.pretty, git.ref_format, git.setting):
            with pytest.raises(UnclearError):
                read(text + "G")

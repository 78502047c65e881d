"""Pages as Markdown, by the extra and by our own reader: the same promises for both."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.builtin.web_fetch import html
from handrail.builtin.web_fetch.hidden import is_hiding, visible

BASE = "https://site.example/docs/page"


@pytest.fixture(params=["own", "extra"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    assert html.WITH_CONVERTER, "the extra is installed for tests"
    monkeypatch.setattr(html, "WITH_CONVERTER", request.param == "extra")
    return str(request.param)


def read(page: str) -> str:
    return html.html_markdown(page, BASE)[1]


PAGE = """<!doctype html><html><head><title>All of  it</title><style>p{}</style></head><body>
<nav><a href="/">Home</a></nav>
<main><h1>Head</h1><p>Some <b>bold</b> and <em>soft</em> words, a <a href="../other?x=1">link</a> and
<a href="javascript:alert(1)">none</a>.</p>
<p><img src="data:image/png;base64,AAAA" alt=""><img src="/logo.png" alt="logo"></p>
<pre><code class="language-python">def f():
    return 1 &lt; 2
</code></pre>
<p>Call <code>f()</code>.</p>
<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1|2</td><td>x</td></tr></tbody></table>
<ul><li>one<ul><li>two</li></ul></li><li>three</li></ul>
<blockquote><p>said</p></blockquote></main>
<footer>Imprint</footer><script>var x = "<p>no</p>"</script></body></html>"""


def test_the_main_text_comes_with_links_tables_lists_and_code(reader: str) -> None:
    title, text = html.html_markdown(PAGE, BASE)

    assert title == "All of it"
    assert "# Head" in text
    assert "Some **bold** and *soft* words, a [link](https://site.example/other?x=1)" in text
    assert "![logo](https://site.example/logo.png)" in text
    assert "```python\ndef f():\n    return 1 < 2\n```" in text
    assert "Call `f()`." in text
    assert [cell.strip() for cell in text.split("| 1")[1].splitlines()[0].split("|")[:3]] == ["\\", "2", "x"]
    assert "- one\n  - two\n- three" in text
    assert "> said" in text
    for left_out in ("Home", "Imprint", "no</p>", "base64", "p{}"):
        assert left_out not in text


@pytest.mark.parametrize(
    "hidden",
    [
        "<p hidden>SECRET</p>",
        "<div HIDDEN=''><b>SECRET</b></div>",
        "<div aria-hidden='true'>SECRET</div>",
        "<p style='display:none'>SECRET</p>",
        "<p title='>' style='opacity:0'>SECRET</p>",
        '<p style="color:red; DISPLAY : NONE !important">SECRET</p>',
        "<p style=visibility:hidden>SECRET</p>",
        "<p style='opacity: 0.0'>SECRET</p>",
        "<p style='font-size:0px'>SECRET</p>",
        "<p style='position:absolute; left:-9999px'>SECRET</p>",
        "<p style='text-indent: -5000px'>SECRET</p>",
        "<p style='height:0;overflow:hidden'>SECRET</p>",
        "<p style='display/**/:none'>SECRET</p>",
        "<p style='color:transparent'>SECRET</p>",
        "<span class='a sr-only'>SECRET</span>",
        "<span class='visually-hidden'>SECRET</span>",
        "<!-- SECRET -->",
        "<template>SECRET</template>",
        "<noscript>SECRET</noscript>",
        "<script>SECRET</script>",
        "<style>SECRET</style>",
        "<iframe srcdoc='x'>SECRET</iframe>",
        "<svg><text>SECRET</text></svg>",
        "<textarea>SECRET</textarea>",
        "<dialog>SECRET</dialog>",
        "<p hidden>SECRET <b>SECRET</b> <i>SECRET</i></p>",
        "<style>.x{display:none}</style><p class='y x'>SECRET</p>",
        "<p id=x>SECRET</p><style>/* { */ a{} h1, p#x { Color:red; VISIBILITY : hidden }</style>",
        "<style>@import 'a'; .x.y{display:none!important}</style><div class='y x'><p>SECRET</p></div>",
        "<style>@media screen{.y{color:red}} .x{display:none}</style><p class=x>SECRET</p>",
        "<style><!-- .x{display:none} --></style><p class=x>SECRET</p>",
        "<!---!>SECRET-->",
        "<script><!-- <script></script>SECRET--></script>",
        "<noembed>SECRET</noembed><noframes>SECRET</noframes><datalist><option>SECRET</datalist>",
        "<section><span hidden><div></span>SECRET</div></section>",
        "<div hidden><table><tr><td></div>SECRET</table></div>",
        "<p><b hidden>SECRET</p>SECRET<p>SECRET</b></p>",
        "<div hidden><p><td>SECRET</div>",
    ],
)
def test_what_a_person_would_not_see_is_left_out(reader: str, hidden: str) -> None:
    text = read(f"<main><p>before</p>{hidden}<p>after</p></main>")

    assert "SECRET" not in text
    assert "before" in text
    assert "after" in text


@pytest.mark.parametrize(
    "styles",
    [
        "@media print { .x { display: none } }",
        ".x { display: none } .x.on { display: block }",
        ".menu .x { display: none }",
        "p { display: none }",
        ".xx { display: none }",
        ".x { border: none } .y { display: none",
    ],
)
def test_what_a_style_sheet_shows_after_all_stays(reader: str, styles: str) -> None:
    assert "words" in read(f"<style>{styles}</style><main><p class='x on'>words</p></main>")


def test_an_element_that_was_left_open_hides_no_more_than_itself(reader: str) -> None:
    text = read("<p>one<p hidden>SECRET<p>two<ul><li>three<li hidden>SECRET<li>four</ul>five")

    assert "SECRET" not in text
    assert [word for word in ("one", "two", "three", "four", "five") if word in text] == [
        "one", "two", "three", "four", "five",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "page",
    [
        "<!doctype html><title>x</title><head><meta charset=utf-8><p>one<p>two",
        "<head>one<p>two",
        "<table><tr><td>one<tr><td>two</table>",
        "<table><thead hidden><tr><th>SECRET<tbody><tr><td>one<td>two</table>",
        "<table><tr hidden><td>SECRET<tr><td>one<td>two</table>",
        "<p>one<svg class=icon /> two",
        "<p>one</p><svg><path d='M0'><p>two",
        "<noscript><!-- </noscript><p>one</p><noscript><style>p.x{display:none}</noscript><p class=x>two",
        "<style media=print>.x{display:none}</style><p>one<p class=x>two",
        "<h1 hidden>SECRET</h2><p>one<p>two",
        "<p>one<plaintext><p hidden>two",
    ],
)
def test_what_a_person_sees_stays_whatever_tags_were_left_out(reader: str, page: str) -> None:
    text = read(page)

    assert "SECRET" not in text
    assert "one" in text
    assert "two" in text


def test_parameters_of_a_link_are_not_taken_for_entities(reader: str) -> None:
    text = read('<a href="/?a=1&section=2&copy=3&amp;region=4&#x26;b=&lt;&para">link</a>')

    assert text.replace("%3C", "<").replace("%C2%B6", "¶") == (
        "[link](https://site.example/?a=1&section=2&copy=3&region=4&b=<¶)"
    )


def test_code_that_shows_a_hidden_element_stays_as_it_is(reader: str) -> None:
    shown = '<p style="display:none">'

    assert shown in read(f"<pre>{shown.replace('<', '&lt;')}</pre>")


def test_letters_that_cannot_be_seen_are_left_out(reader: str) -> None:
    spelled = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")

    assert read(f"<p>plain{spelled} te\u200bxt\u202e\u2066.</p>") == "plain text."


@pytest.mark.parametrize(
    "page",
    [
        *("<div>" * 50_000 + "x", "<b>" * 20_000 + "x", "<table>" * 500, "<p" * 5_000, "<!--" * 9),
        f"<p>&#{'9' * 5_000};&#{'0' * 5_000}65;</p>",
    ],
)
def test_a_hostile_page_ends(reader: str, page: str) -> None:
    assert isinstance(read(page), str)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        *(("<a ", ""), ("</a ", ""), ("<a b='", ""), ("<!-- >", ""), ("<![CDATA[ >", ""), ("<!x", ""), ("<?x", "")),
        *(("<b>", "</i>"), ("<b>", "<p></p>"), ("<ul><li><ul><b>", "<li></li>"), ("<div>", "<style>a{}</style>")),
        *(("<span>", "x</span>"), ("<p style='opacity:", "0"), ("<p style='", "/*"), ("<ul><li><pre>a", "\n")),
        ("<div><b hidden>", "</div>"),
    ],
)
def test_reading_a_page_that_is_made_to_be_slow_costs_in_proportion_to_its_size(
    monkeypatch: pytest.MonkeyPatch, first: str, second: str
) -> None:
    monkeypatch.setattr(html, "WITH_CONVERTER", False)

    def cost(size: int) -> float:
        begins = 1 if second in ("0", "/*", "\n") else size // len(first)
        page = first * begins + second * (size // len(second or first)) + "x'>"
        start = time.process_time()  # of this process alone, however busy the machine is
        read(page if second else first * begins)
        return time.process_time() - start

    assert cost(80_000) < 24 * min(cost(10_000) for _ in range(3)) + 0.2  # 8 times in proportion, 64 times squared


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>a < b <3 c</p>", "a < b <3 c"),
        ("<p>one</p><p title='x", "one"),
        ("<p>one</p><p title= '>two", "one"),
        ("<p>one</p><!-- two <p>three", "one"),
        ("<p>one<!--> two --!> three</p>", "one two --!> three"),
        ("""<p a="<!--" hidden b="-->">gone</p><p>one</p>""", "one"),
        ("<p a = 'x>y' hidden=>gone</p><p A=1 a=2>one</p >", "one"),
        ("<p>one<![CDATA[ gone ]]> two</p></><?x?><!y>", "one two"),
        ("<title>x <b></title><textarea><p></textarea><xmp><i></xmp><p>one</p>", "<i>\n\none"),
        ("<script>'</scripty>'</SCRIPT\n><p>one &amp; two</p>", "one & two"),
    ],
)
def test_tags_are_found_as_browsers_find_them(page: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "WITH_CONVERTER", False)
    assert read(page) == text


@given(
    st.lists(st.sampled_from([*"<>/=\"'&;!-", "p", "b", "ul", "li", "td", "table", "pre", "a href", "hidden", "x "]))
)
def test_every_text_can_be_read(parts: list[str]) -> None:
    html.WITH_CONVERTER = False
    try:
        assert isinstance(read("".join(parts)), str)
    finally:
        html.WITH_CONVERTER = True


@given(
    st.sampled_from(["display:none", "visibility:hidden", "opacity:0", "font-size:0"]),
    st.lists(st.sampled_from(["color:red", "margin:1px", "background:url(x)"]), max_size=2),
    st.lists(st.sampled_from(["width:50%", "font-weight:bold"]), max_size=2),
    st.sampled_from(["", " ", "\n", "\t "]),
    st.booleans(),
)
def test_a_hiding_style_is_seen_among_others(
    hiding: str, before: list[str], after: list[str], blank: str, loud: bool
) -> None:
    name, _, value = hiding.partition(":")
    written = f"{name}{blank}:{blank}{value}"
    style = f";{blank}".join((*before, written.upper() if loud else written, *after))

    assert is_hiding(style)
    assert not is_hiding(";".join((*before, *after)))


def test_ordinary_letters_stay() -> None:
    text = "naïve 日本語 👩‍👩‍👧 می‌خواهم\n\ttab"

    assert visible(text) == text


def test_characters_that_show_nothing_go() -> None:
    assert visible("a\u00adb\u061cc\u3164d\u206ae\ufff9f\U000e0041g") == "abcdefg"

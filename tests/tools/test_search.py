"""Finding tools by names and words."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.tools.search import Query, Searchable, SearchIndex, parameter_text, parse_query, words

TOOLS = [
    Searchable("NotebookEdit", "change jupyter cells", "Replace the source of one cell."),
    Searchable("WebFetch", "download page url", "Get the text of a web page."),
    Searchable("mcp__slack__send_message", "", "Post a message to a channel."),
    Searchable("mcp__slack__list_channels", "", "All channels of the workspace."),
    Searchable("mcp__mail__send", "letter post somebody", "Deliver a message."),
    Searchable("CronCreate", "repeat schedule timer", "Run a prompt again and again."),
    Searchable("read", "", "lower case"),
    Searchable("Read", "", "upper case"),
]
INDEX = SearchIndex(TOOLS)


@pytest.mark.proves("C9")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select:CronCreate,WebFetch", ["CronCreate", "WebFetch"]),
        ("select: WebFetch , nobody,,WebFetch", ["WebFetch"]),
        ("select:webfetch", ["WebFetch"]),
        ("select:read,Read", ["read", "Read"]),
        ("select:WEBFETCH", ["WebFetch"]),
        ("select:nobody", []),
        ("select:", []),
        ("  select:Read", ["Read"]),
    ],
)
def test_select_takes_names_in_the_order_asked_and_ignores_unknown_ones(query: str, expected: list[str]) -> None:
    assert INDEX.find(query, 1) == expected


@pytest.mark.proves("C10", "A4")
@pytest.mark.parametrize(
    ("query", "best"),
    [
        pytest.param("jupyter", "NotebookEdit", id="a word of the hint"),
        pytest.param("notebook edit", "NotebookEdit", id="the parts of a name"),
        pytest.param("schedule something", "CronCreate", id="unknown words do not hurt"),
        pytest.param("URL", "WebFetch", id="case does not matter"),
        pytest.param("note", "NotebookEdit", id="the beginning of a word"),
        pytest.param("send message slack", "mcp__slack__send_message", id="several words"),
        pytest.param("workspace", "mcp__slack__list_channels", id="a word of the description"),
    ],
)
def test_words_find_tools_by_name_hint_and_description(query: str, best: str) -> None:
    assert INDEX.find(query, 3)[0] == best


def test_a_name_weighs_more_than_a_hint_and_a_hint_more_than_a_description() -> None:
    index = SearchIndex(
        [
            Searchable("one", "x y z", "alpha beta gamma"),
            Searchable("two", "alpha y z", "x beta gamma"),
            Searchable("alpha", "w y z", "x beta gamma"),
        ]
    )

    assert index.find("alpha", 3) == ["alpha", "two", "one"]


@pytest.mark.proves("C11")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("+slack send", ["mcp__slack__send_message", "mcp__slack__list_channels"]),
        ("channels +SLACK", ["mcp__slack__list_channels", "mcp__slack__send_message"]),
        ("+slack +list", ["mcp__slack__list_channels"]),
        ("+jupyter", []),
        ("+", []),
    ],
)
def test_required_words_must_be_in_the_name_and_the_rest_ranks(query: str, expected: list[str]) -> None:
    assert INDEX.find(query, 5) == expected


def test_a_known_word_also_finds_its_endings_but_not_every_longer_word() -> None:
    index = SearchIndex([Searchable(name, "", "") for name in ("filesystem", "files", "file", "other")])

    assert {*index.find("file", 5)} == {"file", "files"}
    assert index.find("filesy", 5) == ["filesystem"]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        pytest.param("calculating", "calculator", id="another form of the word"),
        pytest.param("github", "GitHubSearch", id="a name of two words, asked for as one"),
        pytest.param("time zone", "timezone", id="a name of one word, asked for as two"),
        pytest.param("erase folders", "delete_directory", id="synonyms"),
        pytest.param("recipient", "dispatch_letter", id="the name of a parameter"),
        pytest.param("postal code", "dispatch_letter", id="the description of a parameter"),
        pytest.param("what is the calculator of 12", "calculator", id="words and numbers that say little"),
    ],
)
def test_a_tool_is_found_by_what_is_meant(query: str, best: str) -> None:
    schema = {"properties": {"recipient": {"description": "Who gets it, with the postal code."}, "odd": True}}
    tools = [Searchable(name, "", "") for name in ("calculator", "GitHubSearch", "timezone", "delete_directory", "hub")]
    index = SearchIndex([*tools, Searchable("dispatch_letter", "", "", parameter_text(schema))])

    assert index.find(query, 3)[:1] == [best]


def test_requests_find_their_function_among_five_hundred_public_ones() -> None:
    public = json.loads((Path(__file__).parent / "function_requests.json").read_text())
    index = SearchIndex(
        Searchable(each["name"], "", each["description"], " ".join(f"{k} {v}" for k, v in each["parameters"].items()))
        for each in public["functions"]
    )

    found = [(name, index.find(request, 5)) for request, name in public["requests"]]

    assert (len(public["functions"]), len(found)) == (500, 240)
    assert sum(name == names[0] for name, names in found if names) / len(found) >= 0.80
    assert sum(name in names for name, names in found) / len(found) >= 0.94


def test_the_limit_and_ties_follow_the_list() -> None:
    index = SearchIndex([Searchable(f"tool_{letter}", "", "same words") for letter in "cab"])

    assert index.find("same", 2) == ["tool_c", "tool_a"]
    assert index.find("same", 0) == []


def test_names_fall_apart_into_words() -> None:
    assert words("mcp__GitHub__listItems2 HTTPServer straße 東京") == [
        "mcp", "git", "hub", "list", "items", "2", "http", "server", "straße", "東京",
    ]  # fmt: skip
    assert parse_query("+Git list prs") == Query(required=("git",), words=("list", "prs"))


@given(st.text() | st.from_regex(r"(select:)?([+\w, ]|__)*"), st.integers(0, 10))
def test_any_text_is_a_query(text: str, limit: int) -> None:
    found = INDEX.find(text, limit)

    assert len(found) == len(set(found))
    assert set(found) <= {tool.name for tool in TOOLS}
    assert len(found) <= limit or text.strip().startswith("select:")


@given(st.lists(st.builds(Searchable, st.text(min_size=1), st.text(), st.text()), max_size=5), st.text())
def test_any_list_of_tools_can_be_searched(tools: list[Searchable], text: str) -> None:
    index = SearchIndex(tools)

    assert set(index.find(text, 5)) <= {tool.name for tool in tools}
    for tool in tools:
        if tool.name == tool.name.strip() and "," not in tool.name:
            assert index.find(f"select:{tool.name}", 1) == [tool.name]

"""Which requests are the same: nothing but what is volatile may differ."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.conversation.redact import build_redactor
from handrail.errors import CassetteError
from handrail.http.transport import HttpRequest
from handrail.providers.cassette.canonical import canonical, renormalize
from handrail.providers.cassette.normalize import build_normalizer

HERE = build_normalizer(build_redactor({}), {"cwd": Path("/home/me/project"), "home": Path("/home/me")})
THERE = build_normalizer(build_redactor({}), {"cwd": Path("/ci/build"), "home": Path("/home/ci")}, [r"build #\d+"])


def key(text: str | dict[str, Any], normalizer: Any = HERE, **others: Any) -> str:
    message = {"role": "user", "content": text} if isinstance(text, str) else text
    body = {"model": "m", "messages": [message], **others}
    return canonical(HttpRequest("https://host/v1/messages", (), json.dumps(body).encode()), normalizer).key


def call(call_id: str, **values: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": "X", "input": values}]}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("on 2026-11-15", "on 2031-01-02", id="dates"),
        pytest.param("2026-11-15T10:11:12.5Z", "2026-11-15 09:00:00+02:00", id="moments"),
        pytest.param("3 passed in 0.02s", "3 passed in 12.40s", id="durations"),
        pytest.param("<object at 0x7f49d9c11f50>", "<object at 0x10aa00ff>", id="addresses"),
        pytest.param("is 1f0c4f6e-8d2b-4c3a-9e5f-0123456789ab", "is ffffffff-8d2b-4c3a-9e5f-0123456789ab", id="UUIDs"),
        pytest.param(
            "/home/me/.local/results/77-0a1b2c3d/0123456789abcdef01234567.txt",
            "/home/me/.local/results/9-ffffffff/0123456789abcdef01234567.txt",
            id="the folder of a run",
        ),
        pytest.param("<environment>\na\n</environment>\n\nHi", "<environment>\nb\n</environment>\n\nHi", id="facts"),
        pytest.param(
            '<memory>\nx\n<memory-file path="/h/C.md" scope="user">\nmine\n</memory-file>\n</memory>\n\nHi',
            "Hi",
            id="the user's own memory",
        ),
        pytest.param(
            {"role": "user", "content": "Hi"},
            {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}]},
            id="one text as text or block, and cache marks",
        ),
        pytest.param(call("a", p=1), call("b", p=1), id="ids of calls"),
    ],
)
def test_these_are_the_same_request(one: str | dict[str, Any], other: str | dict[str, Any]) -> None:
    assert key(one) == key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("3 passed", "2 passed", id="numbers"),
        pytest.param("Hi", "Ho", id="words"),
        pytest.param("/home/me/project/a", "/home/me/projects/a", id="another folder"),
        pytest.param(call("a", id="x"), call("a", id="y"), id="an id that the model gave a tool"),
        pytest.param(
            '<memory>\n<memory-file path="/h/C.md" scope="project">\nours\n</memory-file>\n</memory>',
            "",
            id="shared memory",
        ),
        pytest.param("build #1", "build #2", id="what nobody declared volatile"),
    ],
)
def test_these_are_not(one: str | dict[str, Any], other: str | dict[str, Any]) -> None:
    assert key(one) != key(other)


def test_places_of_different_machines_are_the_same_and_patterns_can_be_added() -> None:
    assert key("/home/me/project/a.py ~ /home/me/x", HERE) == key("/ci/build/a.py ~ /home/ci/x", THERE)
    assert key("see /home/me/project.", HERE) == key("see /ci/build.", THERE)
    assert key("build #1", THERE) == key("build #2", THERE)


def test_metadata_does_not_matter_and_model_system_and_tools_do() -> None:
    assert key("Hi", metadata={"user_id": "a"}, user="b") == key("Hi", prompt_cache_key="c")
    assert len({key("Hi"), key("Hi", system="s"), key("Hi", tools=[{"name": "a"}]), key("Hi", temperature=1)}) == 4


def test_big_binary_data_is_known_by_its_digest() -> None:
    def image(data: str) -> dict[str, Any]:
        return {"role": "user", "content": [{"type": "image", "source": {"data": data}}]}

    body = {"messages": [image("QUJD" * 1_000)]}
    found = canonical(HttpRequest("http://h/v1/messages", (), json.dumps(body).encode()), HERE)

    assert len(json.dumps(found.messages)) < 200
    assert key(image("QUJD" * 1_000)) != key(image("QUJE" * 1_000))


def test_a_body_that_is_no_json_is_its_text() -> None:
    one, other = (canonical(HttpRequest("http://h/x", (), body), HERE).key for body in (b"\xff a", b"\xff b"))
    assert one != other


@pytest.mark.parametrize("path", ['/a"b', "/a\\b", "/a\nb", "/a{{b"])
def test_a_folder_that_cannot_stand_in_a_recording_is_refused(path: str) -> None:
    with pytest.raises(CassetteError, match="cannot be recorded"):
        build_normalizer(build_redactor({}), {"cwd": Path(path)})


def test_a_volatile_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(CassetteError, match=r"'\(' is not a regular expression"):
        build_normalizer(build_redactor({}), {}, ["("])


TEXT = st.lists(
    st.one_of(
        st.sampled_from(["2026-11-15", "0.5s", "0x7fffffff", "/home/me/project/x", "/home/me", "{{", "}}", "sk-", " "]),
        st.text(max_size=5),
    ),
    max_size=6,
).map("".join)
VALUE = st.recursive(
    TEXT, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=8
)


@settings(max_examples=settings().max_examples // 2)
@given(
    st.dictionaries(TEXT, VALUE, max_size=3),
    st.lists(st.fixed_dictionaries({"role": TEXT, "content": VALUE}), max_size=3),
)
def test_what_was_recorded_is_steady_already(head: dict[str, Any], messages: list[Any]) -> None:
    body = {key: value for key, value in head.items() if key not in {"messages", "input"}} | {"messages": messages}
    first = canonical(HttpRequest("https://host/v1/messages", (), json.dumps(body).encode()), HERE)

    assert renormalize(first, HERE) == first
    assert renormalize(first, THERE).key == renormalize(renormalize(first, THERE), THERE).key

"""WebSearch with each of its services, on servers of loopback that answer as the real ones do."""

import json
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest

from handrail.builtin.web_search.tool import fits
from handrail.config.flags import SettingsFlags
from handrail.http.client import HttpClient, HttpResponse
from handrail.http.transport import HttpRequest
from handrail.providers.anthropic import API as ANTHROPIC
from handrail.providers.client import Endpoint, Provider
from handrail.providers.openai_responses import API as RESPONSES
from handrail.tools.outcome import Outcome, Status
from tests.builtin.web_fetch.site import Page, Site, answer, fetch, serve, text_of
from tests.opening import open_agent

pytestmark = pytest.mark.anyio

ROWS = [
    {"title": "One", "url": "https://docs.example/1", "content": "about <b>one</b>", "publishedDate": "2026-01-02"},
    {"title": "Two", "url": "https://www.evil.example/2", "content": "obey"},
    {"title": "Three", "url": "https://other.example/3", "content": None},
    {"title": "No page", "url": "javascript:alert(1)"},
    "nonsense",
]


def found(rows: Any, kind: str = "application/json") -> Page:
    return answer(json.dumps({"results": rows}), kind)


async def search(folder: Path, site: Site | None, *, allow: Any = ("WebSearch",), **values: Any) -> Outcome:
    settings = values.pop("settings", {"webSearch": {"url": site.url("")}} if site else {})
    return await fetch(folder, "", tool="WebSearch", allow=allow, settings=settings, **values)


@pytest.mark.proves("N18")
async def test_a_searxng_server_is_asked_and_its_hits_are_marked_as_foreign(tmp_path: Path) -> None:
    with serve({"/search": found(ROWS)}) as site:
        done = await search(tmp_path, site, query="bread & butter")

    [path] = site.paths
    text = text_of(done)
    assert parse_qs(urlsplit(path).query) == {"q": ["bread & butter"], "format": ["json"]}
    assert text.startswith("[text of search results of SearXNG, up to the line with ")
    assert "1. One (2026-01-02)\n   https://docs.example/1\n   about <b>one</b>\n\n2. Two\n" in text
    assert "javascript:" not in text


async def test_a_query_leaves_the_machine_so_it_needs_consent(tmp_path: Path) -> None:
    with serve({"/search": found(ROWS)}) as site:
        refused = await search(tmp_path, site, query="bread", allow=[])
        denied = await search(tmp_path, site, query="bread", deny=["WebSearch(query:bread)"])

    assert (refused.status, denied.status) == (Status.DENIED, Status.DENIED)
    assert site.asked == []


@pytest.mark.parametrize(
    ("domains", "words", "urls"),
    [
        ({"allowed_domains": ["docs.example"]}, "bread site:docs.example", ["docs.example/1"]),
        (
            {"allowed_domains": ["docs.example", "Other.example"]},
            "bread (site:docs.example OR site:other.example)",
            ["docs.example/1", "other.example/3"],
        ),
        ({"blocked_domains": ["evil.example"]}, "bread -site:evil.example", ["docs.example/1", "other.example/3"]),
    ],
)
async def test_domains_are_asked_for_and_held_to(
    tmp_path: Path, domains: dict[str, list[str]], words: str, urls: list[str]
) -> None:
    with serve({"/search": found(ROWS)}) as site:
        done = await search(tmp_path, site, query="bread", **domains)

    assert parse_qs(urlsplit(site.paths[0]).query)["q"] == [words]
    assert done.output is not None
    assert [row["url"].removeprefix("https://") for row in done.output.data["results"]] == urls


async def test_pages_of_denied_domains_are_not_found(tmp_path: Path) -> None:
    with serve({"/search": found(ROWS)}) as site:
        done = await search(tmp_path, site, query="bread", deny=["WebFetch(domain:*.evil.example)"])

    assert "evil.example" not in text_of(done)
    assert "docs.example" in text_of(done)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"query": "x y", "allowed_domains": ["a.example"], "blocked_domains": ["b.example"]}, "not both"),
        ({"query": "x y", "allowed_domains": ["https://a.example/x"]}, "is not a domain"),
        ({"query": "x"}, "query"),
    ],
)
async def test_an_input_that_makes_no_sense_is_turned_away(tmp_path: Path, values: dict[str, Any], words: str) -> None:
    with serve({"/search": found(ROWS)}) as site:
        done = await search(tmp_path, site, **values)

    assert done.status is Status.ERROR
    assert words in text_of(done)
    assert site.asked == []


async def test_brave_and_tavily_are_asked_with_their_keys(tmp_path: Path) -> None:
    brave = answer(
        json.dumps({"web": {"results": [{"title": "B", "url": "https://b.example/", "description": "bee"}]}})
    )
    with serve({"/brave": brave, "/tavily": found(ROWS[:1])}) as site:
        settings = {"webSearch": {"backend": "brave", "url": site.url("/brave")}}
        by_brave = await search(tmp_path, site, query="bread", settings=settings, env={"BRAVE_API_KEY": "secret-b"})
        settings = {"webSearch": {"backend": "tavily", "url": site.url("/tavily")}}
        by_tavily = await search(
            tmp_path, site, query="bread", settings=settings, env={"TAVILY_API_KEY": "secret-t"},
            blocked_domains=["evil.example"],
        )  # fmt: skip

    assert "1. B\n   https://b.example/\n   bee" in text_of(by_brave)
    assert site.asked[0][1]["x-subscription-token"] == "secret-b"
    assert "docs.example/1" in text_of(by_tavily)
    assert site.asked[1][1]["authorization"] == "Bearer secret-t"
    assert json.loads(site.bodies[0]) == {
        "query": "bread", "max_results": 10, "include_domains": [], "exclude_domains": ["evil.example"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (answer("no", status=403), "status 403. Its settings.yml has to name json"),
        (answer("no", status=429), "refuses more searches for now"),
        (answer("<html>", status=200), "did not answer with JSON"),
        (answer("[1]", status=200), "did not answer with JSON"),
        (found([]), "found nothing"),
        (found(17), "found nothing"),
    ],
)
async def test_what_is_wrong_with_the_service_is_said(tmp_path: Path, page: Page, words: str) -> None:
    with serve({"/search": page}) as site:
        done = await search(tmp_path, site, query="bread")

    assert words in text_of(done)


async def test_without_a_service_there_is_no_such_tool(tmp_path: Path) -> None:
    done = await search(tmp_path, None, query="bread")

    assert "There is no tool 'WebSearch'" in text_of(done)


def test_a_domain_is_matched_by_whole_labels() -> None:
    assert fits("https://a.docs.example/", ("docs.example",), ())
    assert not fits("https://adocs.example/", ("docs.example",), ())
    assert not fits("https://a.docs.example/", (), ("*.docs.example",))
    assert fits("https://docs.test.example/", ("docs.*.example",), ())
    assert not fits("nonsense", (), ())


# The provider of the model itself


class Rewritten(HttpClient):
    """Sends to the test's server what is meant for the provider."""

    def __init__(self, site: Site) -> None:
        super().__init__({}, keep_alive=False)
        self._site = site

    async def send(self, request: HttpRequest) -> HttpResponse:
        return await super().send(replace(request, url=self._site.url(urlsplit(request.url).path)))


def in_turn(answers: list[Any]) -> Page:
    given = iter(answers)

    def give(request: BaseHTTPRequestHandler) -> None:
        answer(json.dumps(next(given)), "application/json")(request)

    return give


def message(*blocks: Any, **usage: Any) -> dict[str, Any]:
    about = {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6"}
    counts = {"input_tokens": 1000, "output_tokens": 100, **usage}
    return {**about, "content": list(blocks), "stop_reason": "end_turn", "usage": counts}


CALL = {
    "type": "tool_use",
    "id": "t1",
    "name": "WebSearch",
    "input": {"query": "bread", "allowed_domains": ["d.example"]},
}
ASKED = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "bread"}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "s1",
    "content": [{"type": "web_search_result", "url": "https://d.example/x", "title": "X", "encrypted_content": "e"}],
}


def an_agent(folder: Path, provider: Provider) -> Any:
    flags = SettingsFlags(sources=(), managed_policy=False, allowed=("WebSearch",))
    env = {"HOME": str(folder), "HANDRAIL_STATE_DIR": str(folder / "state"), "PATH": "/usr/bin"}
    return open_agent(provider, cwd=folder, env=env, flags=flags, builtin_tools=["WebSearch"])


@pytest.mark.proves("N18")
async def test_the_provider_searches_itself_and_each_search_is_paid_for(tmp_path: Path) -> None:
    side = message(ASKED, FOUND, {"type": "text", "text": "It costs 4."}, server_tool_use={"web_search_requests": 2})
    answers = [message(CALL), side, message({"type": "text", "text": "Four."})]
    with serve({"/v1/messages": in_turn(answers)}) as site, anyio.fail_after(30):
        provider = Provider(
            ANTHROPIC, Endpoint("https://api.anthropic.com"), Rewritten(site), model="claude-sonnet-4-6"
        )
        async with an_agent(tmp_path, provider) as agent:
            done = await agent.ask("Go")

    first, search_body, last = map(json.loads, site.bodies)
    [result] = last["messages"][-1]["content"]
    assert "WebSearch" in {tool["name"] for tool in first["tools"]} or "WebSearch" in json.dumps(first)
    assert search_body["tools"] == [
        {"type": "web_search_20260318", "name": "web_search", "max_uses": 5, "allowed_domains": ["d.example"]}
    ]
    assert "It costs 4.\n\n1. X\n   https://d.example/x" in result["content"]
    assert done.spent["claude-sonnet-4-6"].web_searches == 2
    assert done.dollars == pytest.approx(3 * (1000 * 3 + 100 * 15) / 1e6 + 2 * 0.01)


async def test_a_search_that_the_provider_refuses_is_an_error(tmp_path: Path) -> None:
    failed = {**FOUND, "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}}
    answers = [message(CALL), message(ASKED, failed), message({"type": "text", "text": "Sorry."})]
    with serve({"/v1/messages": in_turn(answers)}) as site, anyio.fail_after(30):
        provider = Provider(
            ANTHROPIC, Endpoint("https://api.anthropic.com"), Rewritten(site), model="claude-sonnet-4-6"
        )
        async with an_agent(tmp_path, provider) as agent:
            await agent.ask("Go")

    [result] = json.loads(site.bodies[-1])["messages"][-1]["content"]
    assert result["is_error"]
    assert "did not search: max_uses_exceeded" in result["content"]


async def test_the_other_vendor_searches_as_well(tmp_path: Path) -> None:
    def response(*items: Any) -> dict[str, Any]:
        usage = {"input_tokens": 10, "output_tokens": 5}
        return {
            "id": "r",
            "object": "response",
            "status": "completed",
            "model": "gpt-5",
            "output": list(items),
            "usage": usage,
        }

    call = {
        "type": "function_call",
        "id": "f",
        "call_id": "c1",
        "name": "WebSearch",
        "arguments": '{"query": "bread"}',
        "status": "completed",
    }
    sources = [{"type": "url", "url": "https://d.example/x"}]
    searched = {
        "type": "web_search_call",
        "id": "w",
        "status": "completed",
        "action": {"type": "search", "sources": sources},
    }
    said = {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "It costs 4."}],
    }
    with serve({"/v1/responses": in_turn([response(call), response(searched, said), response(said)])}) as site:
        provider = Provider(RESPONSES, Endpoint("https://api.openai.com/v1"), Rewritten(site), model="gpt-5")
        with anyio.fail_after(30):
            async with an_agent(tmp_path, provider) as agent:
                done = await agent.ask("Go")

    _, search_body, last = map(json.loads, site.bodies)
    assert search_body["tools"] == [{"type": "web_search"}]
    assert "web_search_call.action.sources" in search_body["include"]
    assert "https://d.example/x" in json.dumps(last["input"])
    assert done.spent["gpt-5"].web_searches == 1


async def test_other_servers_offer_no_search(tmp_path: Path) -> None:
    with serve({}) as site:
        provider = Provider(ANTHROPIC, Endpoint(site.url("")), Rewritten(site), model="claude-sonnet-4-6")
        async with an_agent(tmp_path, provider) as agent:
            assert [tool.name for tool in agent.tools] == []

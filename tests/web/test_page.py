"""The page of `handrail view` in a real browser."""

import http.client
import http.server
import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from handrail.testing import say, use
from handrail.web.assets import assets
from tests.forked import program, unmeasured
from tests.web.browser import browser, opened, view
from tests.web.runs import HOSTILE, Answers, hostile_run, keep_run

pytestmark = pytest.mark.needs("chromium")
VIEWS = ("Conversation", "Timeline", "Decisions", "Changes", "Cost and cache", "Raw records")
EDIT = {"file_path": "a.txt", "old_string": "two", "new_string": "three"}
SCRIPTS = Path(__file__).parent / "scripts"
PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_run(tmp_path_factory.mktemp("hostile"))


def script(name: str) -> str:
    return (SCRIPTS / f"{name}.js").read_text()


def state_of(session: Path) -> Path:
    return session.parents[2]


def test_hostile_content_is_shown_as_text_in_every_view_and_at_phone_width(chromium: Browser, hostile: Path) -> None:
    with view(state_of(hostile), hostile.stem) as url, opened(chromium, viewport=PHONE) as watched:
        page = watched.page
        page.goto(url)
        for name in VIEWS:
            page.get_by_role("link", name=name).click()
            page.locator(f'section[aria-label="{name}"] :is(.vrow, .file)').first.wait_for()
            watched.unfold()
            assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth"), name
        page.get_by_role("link", name="Conversation").click()
        page.get_by_role("list", name="Conversation").wait_for()
        shown = page.locator("main").inner_text()
        page.goto(f"{url.partition('#')[0]}#/")
        page.get_by_role("list", name="Sessions").get_by_role("listitem").wait_for()
        page.get_by_role("link", name="Statistics").click()
        page.get_by_role("heading", name="Slowest calls").wait_for()
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")

        assert "<script>window.hacked" in shown
        assert "\u2039U+202E\u203agnp.exe" in shown
        assert not any(mark in shown for mark in ("\x1b", "\u202e", "\x00", "[31m"))
        assert page.evaluate("window.hacked") is None
        assert page.locator("#app :is(script, img, svg, iframe)").count() == 0
        assert watched.complaints == []
        assert {address.split("/")[2] for address in watched.requests} == {url.split("/")[2]}
        assert "token" not in page.url


def test_a_run_can_be_read_with_the_keyboard_and_a_screen_reader(chromium: Browser, tmp_path: Path) -> None:
    answers: Answers = [[use("b", "Bash", command="touch x"), use("c", "echo", text="hi")], [say("Done.")]]
    session = keep_run(tmp_path / "p", answers, "Do it.", mode="", deny=["Bash(touch *)"])
    with view(state_of(session), session.stem) as url, opened(chromium, color_scheme="dark") as watched:
        page = watched.page
        page.goto(url)
        page.get_by_role("link", name="Decisions").click()
        rows = page.get_by_role("list", name="Decisions")
        rows.get_by_role("listitem").first.wait_for()
        rows.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        opened_row = rows.get_by_role("listitem").first

        opened_row.get_by_role("table").wait_for()
        assert "deny Bash touch x" in opened_row.aria_snapshot()
        assert "What would have allowed it: only a change of that rule." in opened_row.inner_text()
        page.keyboard.press("ArrowDown")
        assert "allow echo hi" in page.evaluate("document.activeElement.innerText")
        page.get_by_role("link", name="Timeline").click()
        page.get_by_role("button", name="Bash touch x: denied").click()
        assert "touch x" in page.locator(".told").inner_text()
        page.get_by_role("button", name="Theme: auto").click()
        assert page.evaluate("getComputedStyle(document.body).colorScheme") == "light"


def test_another_site_a_rebinding_name_and_a_missing_token_get_nothing(chromium: Browser, hostile: Path) -> None:
    with view(state_of(hostile), hostile.stem) as url, other_site() as elsewhere, opened(chromium) as watched:
        page = watched.page
        ours = url.partition("/#")[0]
        page.goto(url)
        page.get_by_role("list", name="Conversation").wait_for()  # the cookie is there now

        page.goto(elsewhere)
        tried = page.evaluate(script("attacks"), [ours, hostile.stem])
        assert set(tried.values()) == {"refused"}
        assert page.evaluate(script("frame"), ours) == "refused"

        rebound = page.goto(ours.replace("127.0.0.1", "evil.test"))
        assert rebound is not None
        assert (rebound.status, "evil.test" in rebound.text()) == (421, True)

        with opened(chromium) as stranger:
            stranger.page.goto(ours)
            stranger.page.get_by_role("alert").wait_for()
            assert "needs the address" in stranger.page.get_by_role("alert").inner_text()
            assert stranger.page.evaluate("fetch('/api/sessions').then((a) => a.status)") == 401
            assert stranger.page.evaluate(script("post"), ["/api/enter", {"token": "A" * 43}]) == 401
        first = page.request.get(f"{ours}/")
        assert first.headers["content-security-policy"].startswith("default-src 'self';")
        assert first.headers["x-frame-options"] == "DENY"
        assert "access-control-allow-origin" not in first.headers
        cookie = watched.page.context.cookies(ours)[0]
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")


@contextmanager
def other_site() -> Iterator[str]:
    """The address of a page of another origin."""

    class Plain(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>elsewhere</title><p>elsewhere")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Plain) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://localhost:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()


def test_files_are_brought_back_only_after_a_question(chromium: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "p"
    answers: Answers = [
        [
            use("r", "Read", file_path="a.txt"),
            use("e", "Edit", file_path="a.txt", old_string="two", new_string="three"),
        ],
        [say("Done.")],
    ]
    session = keep_run(folder, answers, "Change it.")
    with view(state_of(session), session.stem) as url, opened(chromium) as watched:
        page = watched.page
        page.goto(url)
        page.get_by_role("link", name="Changes").click()
        page.locator(".diff .removed", has_text="-two").wait_for()
        page.get_by_role("button", name="Undo from here").click()
        page.keyboard.press("Enter")  # what has the focus keeps the files
        assert (folder / "a.txt").read_text() == "one\nthree\n"

        page.get_by_role("button", name="Undo from here").click()
        page.get_by_role("dialog").get_by_role("button", name="Undo").click()
        page.get_by_text("1 file changed back to before change 1.").wait_for()

        assert (folder / "a.txt").read_text() == "one\ntwo\n"
        assert "changed, undone" in page.get_by_role("table").inner_text()


def test_a_page_that_stays_open_follows_its_session_and_does_not_grow(chromium: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "p"
    session = keep_run(folder, [[say("The first answer.")]], "Begin.")
    with view(state_of(session), session.stem) as url, opened(chromium) as watched:
        page = watched.page
        page.goto(url)
        page.get_by_text("The first answer.").wait_for()
        loaded = len(watched.requests)

        calls = [use(f"c{number}", "echo", text=f"call {number}") for number in range(120)]
        keep_run(folder, [calls, [say("The second answer.")]], "Go on.", session=session.stem)

        page.get_by_role("list", name="Conversation").evaluate("(list) => { list.scrollTop = list.scrollHeight; }")
        page.get_by_text("The second answer.").wait_for()
        page.get_by_text("120 calls").wait_for()
        before = dom_counts(page)
        append_calls(session, 400)
        page.get_by_text("520 calls").wait_for()
        page.get_by_role("list", name="Conversation").evaluate("(list) => { list.scrollTop = list.scrollHeight; }")
        page.get_by_text("file 399").wait_for()
        after = dom_counts(page)

        assert len(watched.requests) == loaded  # nothing was loaded again
        assert page.locator(".vrow").count() < 60
        assert (
            after["nodes"] < before["nodes"] + 200,
            after["jsEventListeners"] < before["jsEventListeners"] + 20,
        ) == (
            True,
            True,
        )
        assert watched.complaints == []


def dom_counts(page: Page) -> dict[str, int]:
    """How many nodes and listeners the page holds, after what is garbage is gone."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("HeapProfiler.collectGarbage")
    counts: dict[str, int] = devtools.send("Memory.getDOMCounters")
    devtools.detach()
    return counts


def append_calls(session: Path, count: int) -> None:
    """Write calls into a session as if it had gone on."""
    with session.open("a") as file:
        for number in range(count):
            block = {
                "type": "tool_use",
                "id": f"more{number}",
                "name": "Read",
                "input": {"file_path": f"file {number}"},
            }
            result = {"type": "tool_result", "tool_use_id": f"more{number}", "content": "ok"}
            for line in (
                {"type": "assistant", "message": {"model": "m", "content": [block]}},
                {"type": "user", "message": {"content": [result]}},
            ):
                file.write(json.dumps(line) + "\n")


def test_events_can_be_resumed_by_their_id_and_begin_again_when_that_is_not_known(tmp_path: Path) -> None:
    session = keep_run(tmp_path / "p", [[say("The first answer.")]], "Begin.")
    with view(state_of(session), session.stem) as url:
        host, token = url.split("/")[2], url.partition("#token=")[2].partition("/")[0]

        @contextmanager
        def get(path: str, after: str = "") -> Iterator[http.client.HTTPResponse]:
            headers = {"authorization": f"Bearer {token}"} | ({"last-event-id": after} if after else {})
            with closing(http.client.HTTPConnection(host, timeout=20)) as connection:
                connection.request("GET", path, headers=headers)
                with closing(connection.getresponse()) as answer:
                    yield answer

        with get(f"/api/run/{session.stem}") as answer:
            version = json.load(answer)["version"]
        with session.open("a") as file:
            file.write(json.dumps({"type": "system", "subtype": "note", "content": "A note."}) + "\n")
        with get(f"/api/events?run={session.stem}", version) as answer:
            missed = next_event(answer)
        with get(f"/api/events?run={session.stem}&after=other-7") as answer:
            unknown = next_event(answer)

    assert missed["event"] == "change"
    assert "A note." in missed["data"]
    assert missed["id"] != version
    assert unknown["event"] == "reset"


def next_event(answer: http.client.HTTPResponse) -> dict[str, str]:
    """The next event of a stream."""
    found: dict[str, str] = {}
    while (line := answer.readline().decode().rstrip("\n")) or "event" not in found:
        name, _, value = line.partition(": ")
        if name in ("event", "data", "id"):
            found[name] = value
    return found


def test_ten_thousand_calls_are_never_all_in_the_page(chromium: Browser, tmp_path: Path) -> None:
    session = tmp_path / "state" / "sessions" / "-p" / "long.jsonl"
    session.parent.mkdir(parents=True, mode=0o700)
    (tmp_path / "state").chmod(0o700)
    lines = [{"type": "handrail", "event": "opened", "version": 1, "cwd": "/p"}]
    for number in range(10_000):
        block = {"type": "tool_use", "id": f"c{number}", "name": "Read", "input": {"file_path": f"file {number}"}}
        lines.append({"type": "assistant", "message": {"model": "m", "content": [block]}})
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "ok"}
        lines.append({"type": "user", "message": {"content": [result]}})
    session.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with view(tmp_path / "state", "long") as url, opened(chromium) as watched:
        page = watched.page
        page.goto(url)
        for name in ("Conversation", "Timeline"):
            page.get_by_role("link", name=name).click()
            rows = page.get_by_role("list", name=name)
            rows.get_by_text("file 0", exact=True).or_(rows.get_by_text("Read file 0", exact=True)).first.wait_for()
            rows.focus()
            page.keyboard.press("End")
            rows.get_by_text("file 9999").first.wait_for()
            assert page.locator(".vrow").count() < 120


def test_statistics_are_those_of_the_command_and_follow_the_choice_of_days(chromium: Browser, tmp_path: Path) -> None:
    answers: Answers = [[use("a", "Read", file_path="none.txt"), use("b", "Glob", pattern="*")], [say("Done.")]]
    session = keep_run(tmp_path, answers, "Look.")
    env = {**unmeasured(), "HANDRAIL_STATE_DIR": str(state_of(session)), "HOME": str(tmp_path)}
    command = [str(program()), "stats", "--json"]
    printed = subprocess.run(command, env=env, capture_output=True, check=True, cwd=tmp_path)
    stats = json.loads(printed.stdout)
    with view(state_of(session)) as url, opened(chromium) as watched:
        page = watched.page
        page.goto(f"{url.removesuffix('/')}/stats")
        tools = page.locator("section.stats", has=page.get_by_role("heading", name="Tools"))
        tools.wait_for()
        rows = tools.get_by_role("row").all_inner_texts()[1:]
        cards = dict(each.split("\n") for each in page.locator(".cards > div").all_inner_texts())
        with page.expect_response("**/api/stats?days=0"):
            page.get_by_label("Since when").select_option("0")
        tools.wait_for()
        assert watched.complaints == []
        page.goto(f"{url.partition('#')[0]}api/stats?days=x")
        assert "days is a whole number" in page.locator("body").inner_text()
    assert [row.split()[:3] for row in rows] == [
        [each["tool"], str(each["calls"]), str(each["failed"])] for each in stats["tools"]
    ]
    assert (cards["Calls"], cards["Failed"]) == (str(stats["total"]["calls"]), str(stats["total"]["failed"]))


def test_the_files_of_the_page_are_small() -> None:
    assert sum(len(content) for content, _ in assets().values()) < 60_000
    assert HOSTILE.encode() not in b"".join(content for content, _ in assets().values())

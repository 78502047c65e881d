"""WebFetch: read a page of the web and answer a question about it."""

import asyncio
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from handrail.builtin.services import ToolServices
from handrail.builtin.support.foreign_text import NOTICE, mark_foreign
from handrail.builtin.support.read_only import ReadOnlyTool
from handrail.builtin.web_fetch.cache import CachedPage, PageCache
from handrail.builtin.web_fetch.content import PageContent, read_content
from handrail.builtin.web_fetch.fetch import FetchedPage, PageFetcher, Redirected, SiteMemory, status_text
from handrail.conversation.blocks import Json, ToolUse
from handrail.conversation.stream import Usage
from handrail.errors import ToolError
from handrail.http.web_url import WebTarget, https_first, read_url
from handrail.tools.access import Access
from handrail.tools.cards import Card
from handrail.tools.context import Progress, RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.permission import Refuse, Verdict
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.wording import cut

MAX_SHOWN = 20_000
MAX_ASKED = 100_000
"""Characters of a page that a model is asked about."""
SIGN_IN = frozenset((401, 403, 407))


class WebFetchInput(PlainInput):
    url: str = Field(min_length=1, description="The whole address, https://...")
    prompt: str = Field(default="", description="What you want to know from the page. Leave it out for its text.")


class WebFetch(ReadOnlyTool[WebFetchInput]):
    name = "WebFetch"
    search_hint = "download read page url website documentation link http"
    input_model = WebFetchInput
    subject = "url"
    should_defer = True
    interrupt = "cancel"
    max_result_chars = None

    def __init__(self, services: ToolServices) -> None:
        self._services = services
        self._memory = SiteMemory()

    def access(self, args: WebFetchInput, run: RunContext) -> Access:
        return Access.of(reaches=https_first(args.url), width="shared")

    def summary(self, args: WebFetchInput) -> str:
        return f"WebFetch({cut(args.url, 200)})"

    def classifier_text(self, args: WebFetchInput) -> str:
        return args.url

    def use_card(self, partial: Json) -> Card:
        return Card(title="WebFetch", detail=cut(str(partial.get("url", "")), 200), body=str(partial.get("prompt", "")))

    async def validate(self, args: WebFetchInput, ctx: ToolContext) -> Refuse | None:
        authority = args.url.partition("//")[2].partition("/")[0]
        if "@" in authority:
            return Refuse(
                "The URL holds a user name or password, which are never sent. Give it without, or ask the user."
            )
        return None

    async def call(self, args: WebFetchInput, ctx: ToolContext) -> Output:
        start = time.monotonic()
        asked = https_first(args.url)
        cache = PageCache(self._services.state / "web")
        kept = await asyncio.to_thread(cache.find, asked)
        if kept is None:
            found = await self._fetch(read_url(asked), cache, asked, ctx)
            if isinstance(found, Output):
                return found
            kept = found
        page, text = kept
        output = await self._answer(args, page, text, ctx)
        took = round(1000 * (time.monotonic() - start))
        return _with_data(output, page, took)

    async def _fetch(
        self, target: WebTarget, cache: PageCache, asked: str, ctx: ToolContext
    ) -> tuple[CachedPage, str] | Output:
        """The page with its text; an output if it is a redirect, or holds pictures."""
        ctx.progress(Progress(f"fetching from {target.host}"))
        fetcher = PageFetcher(self._services.env, self._services.web, self._memory, partial(_judge_address, ctx))
        fetched = await fetcher.fetch(target)
        if isinstance(fetched, Redirected):
            return _redirect_output(fetched)
        if not 200 <= fetched.status < 300:
            raise ToolError(_failure(fetched))
        content = await asyncio.to_thread(read_content, fetched, ctx.abort)
        name = Path(f"page{content.suffix}")
        page = CachedPage(
            fetched.url, content.title, content.kind, fetched.status, len(fetched.body), fetched.cut, name
        )
        if content.blocks:
            file = await asyncio.to_thread(cache.save, asked, content.raw, content.suffix)
            return _with_data(_media_output(fetched, content, str(file)), page, 0)
        return await asyncio.to_thread(cache.keep, asked, page, content.text), content.text

    async def _answer(self, args: WebFetchInput, page: CachedPage, text: str, ctx: ToolContext) -> Output:
        """The answer of a model to the question; without one, the beginning of the text."""
        reader, notes = self._services.page_reader, []
        used: tuple[tuple[str, Usage], ...] = ()
        cut_off = " It was cut: it is larger than what is fetched." if page.cut else ""
        if not text.strip():
            return Output(text=f"{page.url} holds no text that can be read without running its programs.{cut_off}")
        if reader is not None and args.prompt:
            ctx.progress(Progress(f"reading {page.url}"))
            answer = await reader.answer(args.prompt, f"{page.title}\n\n{text[:MAX_ASKED]}")
            used = answer.used
            if not answer.problem:
                seen = f" Only its first {MAX_ASKED:,} characters were read." if len(text) > MAX_ASKED else ""
                where = f"The whole text ({len(text):,} characters) is in {page.file}.{seen}{cut_off}"
                body = mark_foreign(answer.text, f"an answer about {page.url}")
                card = Card(title="WebFetch", detail=page.url, body=answer.text, body_kind="markdown")
                return Output(text=f"{body}\n[{where}]", card=card, used=used)
            notes.append(f"[No model answered the question: {answer.problem}. This is the text.]")
        shown = text[:MAX_SHOWN]
        if len(shown) < len(text):
            notes.append(
                f"[These are the first {MAX_SHOWN:,} of {len(text):,} characters.{cut_off} The whole text is in "
                f"{page.file}; Read or Grep shows more of it.]"
            )
        title = f"{page.title}\n\n" if page.title and not shown.lstrip().startswith(f"# {page.title}") else ""
        body = mark_foreign(f"{title}{shown}", page.url)
        card = Card(title="WebFetch", detail=page.url, body=shown, body_kind="markdown")
        return Output(text="\n".join((*notes, body)), card=card, used=used)


async def _judge_address(ctx: ToolContext, target: WebTarget, address: str) -> None:
    """Ask the rules about the address that a host turned out to have."""
    host = f"[{address}]" if ":" in address else address
    use = ToolUse(f"{ctx.use.id}-{address}", WebFetch.name, {"url": f"{target.scheme}://{host}:{target.port}/"})
    decision = await ctx.may_use(use)
    if decision.verdict is not Verdict.ALLOW:
        rule = f"WebFetch(domain:{host}{'' if target.ordinary else f':{target.port}'})"
        raise ToolError(
            f"{target.host} leads to {address}, which is on this machine or in its network, and that is refused: "
            f"{decision.reason}. The user can allow it with the rule {rule}."
        )


def _redirect_output(found: Redirected) -> Output:
    text = (
        f"{found.url} redirects to another place ({status_text(found.status)}), which was not fetched:\n{found.to}\n"
        "Call WebFetch with that URL if it is where you want to go."
    )
    data = {"url": found.url, "code": found.status, "codeText": status_text(found.status)[4:], "result": text}
    card = Card(title="WebFetch", detail=f"redirect to {found.to}")
    return Output(text=text, data={**data, "bytes": 0, "durationMs": 0}, card=card)


def _media_output(page: FetchedPage, content: PageContent, file: str) -> Output:
    text = f"{content.text} It comes from {page.url} and is in {file}. {NOTICE}"
    return Output(text=text, blocks=content.blocks, card=Card(title="WebFetch", detail=page.url, body=content.text))


def _failure(page: FetchedPage) -> str:
    """What a server said instead of giving the page."""
    hints = {404: "Check the address.", 410: "Look for another page.", 429: "Wait before you ask it again."}
    hint = hints.get(page.status, "Try another page.")
    if page.status in SIGN_IN:
        hint = "It may need a sign-in; no cookies and no credentials are sent. Ask the user for the text."
    if after := page.headers.get("retry-after", ""):
        hint = f"It asks to wait: {after[:40]!r}. {hint}"
    return f"{page.url} answered {status_text(page.status)}. {hint}"


def _with_data(output: Output, page: CachedPage, took: int) -> Output:
    data = {
        "url": page.url,
        "bytes": page.size,
        "code": page.status,
        "codeText": status_text(page.status)[4:],
        "result": output.text,
        "durationMs": took,
    }
    return replace(output, data=data)

"""A started language server: greeted, with the documents that it has open and what it said about them."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias
from urllib.parse import quote, unquote, urlsplit

from handrail.errors import LspAnswerError, LspError
from handrail.lsp.known import LanguageServerSpec, language_of
from handrail.lsp.peer import METHOD_NOT_FOUND, LanguagePeer, PeerEvents
from handrail.lsp.problems import CodeProblem, parse_problems
from handrail.processes.spawn import ProcessSpec
from handrail.records import record

MAX_OPEN = 50
SETTLE_SECONDS = 0.3
"""So long a server that tells no versions must be quiet about a file: some tell first what they find first."""
MAX_PUBLISHED = 1_000
MAX_PROGRESS = 100
CONTENT_MODIFIED, SERVER_CANCELLED, NOT_READY = -32801, -32802, -32002
RETRIES = 4
FIRST_PAUSE = 0.1
SYMBOL_KINDS = list(range(1, 27))
CAPABILITIES: Mapping[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "window": {"workDoneProgress": True},
    "workspace": {
        "configuration": True,
        "workspaceFolders": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "symbol": {"symbolKind": {"valueSet": SYMBOL_KINDS}},
        "applyEdit": False,
    },
    "textDocument": {
        "synchronization": {},
        "definition": {"linkSupport": True},
        "implementation": {"linkSupport": True},
        "references": {},
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True, "symbolKind": {"valueSet": SYMBOL_KINDS}},
        "callHierarchy": {},
        "publishDiagnostics": {"versionSupport": True},
        "diagnostic": {"dynamicRegistration": True, "relatedDocumentSupport": False},
    },
}
FOR_EDITORS = frozenset(("client/registerCapability", "client/unregisterCapability", "window/workDoneProgress/create"))
ChangeKind: TypeAlias = Literal["created", "changed", "deleted"]
CHANGE_NUMBERS: Mapping[ChangeKind, int] = {"created": 1, "changed": 2, "deleted": 3}


def uri_of(path: str) -> str:
    """The address of a file."""
    return f"file://{quote(path, errors='surrogateescape')}"


def path_of(uri: object) -> str:
    """The path of a file's address; empty if it is no file of this machine."""
    if not isinstance(uri, str) or not uri.startswith("file://"):
        return ""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    path = unquote(parts.path, errors="surrogateescape")
    return os.path.normpath(path) if parts.netloc in ("", "localhost") and path[:1] == "/" and "\0" not in path else ""


@record
class OpenDocument:
    """A file as the server knows it."""

    path: str
    version: int
    text: str


@record
class Published:
    """What the server said about a file by itself, and about which version, if it told."""

    problems: tuple[CodeProblem, ...]
    version: int | None
    number: int
    """The how-manieth of its messages about files it was."""


class LanguageServer:
    """One server with one root folder."""

    def __init__(self, spec: LanguageServerSpec, root: str) -> None:
        self.spec = spec
        self.root = root
        self.capabilities: Mapping[str, Any] = {}
        self.documents: dict[str, OpenDocument] = {}
        self.checked: dict[str, tuple[str, tuple[CodeProblem, ...]]] = {}
        """By path, a text and what was wrong with it."""
        self._peer: LanguagePeer
        self._published: dict[str, Published] = {}
        self._number = 0
        self._registered: set[str] = set()
        self._progress: dict[str, None] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._sync = asyncio.Lock()

    @classmethod
    async def start(cls, spec: LanguageServerSpec, root: str, process: ProcessSpec, release: Any) -> Self:
        """Start and greet a server; LspError if it cannot be had."""
        server = cls(spec, root)
        server._peer = await LanguagePeer.start(
            spec.name, process, PeerEvents(server._answer, server._take_notice), release
        )
        try:
            async with asyncio.timeout(spec.start_seconds):
                await server._greet()
        except TimeoutError as error:
            await server.aclose()
            raise LspError(
                f"The language server {spec.name!r} has not answered after {spec.start_seconds:g} s."
            ) from error
        except BaseException:
            await server.aclose()
            raise
        return server

    async def _greet(self) -> None:
        folder = {"uri": uri_of(self.root), "name": Path(self.root).name}
        answer = await self._peer.request(
            "initialize",
            {
                "processId": None,  # in a sandbox it would look for a process that it cannot see
                "clientInfo": {"name": "handrail"},
                "rootUri": folder["uri"],
                "rootPath": self.root,
                "workspaceFolders": [folder],
                "capabilities": CAPABILITIES,
                "initializationOptions": dict(self.spec.options),
            },
        )
        match answer:
            case {"capabilities": Mapping() as capabilities}:
                self.capabilities = capabilities
            case _:
                raise LspError(f"The language server {self.spec.name!r} did not say what it can do.")
        if self.capabilities.get("positionEncoding") not in (None, "utf-16"):
            raise LspError(f"The language server {self.spec.name!r} does not count in UTF-16, as it was asked to.")
        await self._peer.notify("initialized", {})
        if self.spec.settings:
            await self._peer.notify("workspace/didChangeConfiguration", {"settings": dict(self.spec.settings)})

    @property
    def end_reason(self) -> str:
        """Why it has ended; empty while it runs."""
        return self._peer.ended.result() if self._peer.ended.done() else ""

    @property
    def is_loading(self) -> bool:
        """Whether it says that it is still at work on the project."""
        return bool(self._progress)

    def offers(self, provider: str) -> bool:
        """Whether it can answer this kind of question."""
        return self.capabilities.get(provider) not in (None, False) or provider in self._registered

    async def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result of a request. One that came too early, or amid changes, is repeated a few times."""
        pause = FIRST_PAUSE
        for attempt in range(RETRIES):
            try:
                return await self._peer.request(method, dict(params))
            except LspAnswerError as error:
                early = error.code in (CONTENT_MODIFIED, SERVER_CANCELLED, NOT_READY)
                if not early or attempt == RETRIES - 1:
                    raise
            await asyncio.sleep(pause)
            pause *= 2
        raise AssertionError

    async def wait_until_loaded(self) -> None:
        """Wait until it says that it is done with the project."""
        while self.is_loading and not self._peer.ended.done():
            await self._next_news()

    async def aclose(self) -> None:
        """End it."""
        await self._peer.aclose()

    # Documents

    async def open(self, path: str, text: str) -> OpenDocument:
        """Have the server know a file with this text."""
        async with self._sync:
            known = self.documents.pop(path, None)
            if known is not None and known.text == text:
                self.documents[path] = known
                return known
            name: dict[str, Any] = {"uri": uri_of(path)}
            document = OpenDocument(path, known.version + 1 if known else 1, text)
            self.documents[path] = document
            if known is None:
                await self._close_oldest()
                about = {**name, "languageId": language_of(self.spec, path), "version": 1, "text": text}
                await self._peer.notify("textDocument/didOpen", {"textDocument": about})
            else:
                about = {**name, "version": document.version}
                changes = {"textDocument": about, "contentChanges": [{"text": text}]}
                await self._peer.notify("textDocument/didChange", changes)
            return document

    async def _close_oldest(self) -> None:
        while len(self.documents) > MAX_OPEN:
            await self._forget(next(iter(self.documents)))

    async def _forget(self, path: str) -> None:
        del self.documents[path]
        self.checked.pop(path, None)
        await self._peer.notify("textDocument/didClose", {"textDocument": {"uri": uri_of(path)}})

    async def files_changed(self, changes: Mapping[str, ChangeKind]) -> None:
        """Tell it which files were created, changed or deleted; deleted ones are closed."""
        async with self._sync:
            for path, kind in changes.items():
                if kind == "deleted" and path in self.documents:
                    await self._forget(path)
        listed = [{"uri": uri_of(path), "type": CHANGE_NUMBERS[kind]} for path, kind in changes.items()]
        await self._peer.notify("workspace/didChangeWatchedFiles", {"changes": listed})

    # Diagnostics

    async def check(self, path: str, text: str) -> tuple[CodeProblem, ...]:
        """What is wrong with a file of this text: asked for, or waited for if the server tells by itself."""
        seen = self._number
        before = self.documents.get(path)
        document = await self.open(path, text)
        published = await self._wait_published(document, 0 if before == document else seen)
        found = await self._pull(path) if published is None else published.problems
        self.checked[path] = (text, found)
        return found

    async def _pull(self, path: str) -> tuple[CodeProblem, ...]:
        answer = await self.ask("textDocument/diagnostic", {"textDocument": {"uri": uri_of(path)}})
        return parse_problems(answer.get("items")) if isinstance(answer, Mapping) else ()

    async def _wait_published(self, document: OpenDocument, seen: int) -> Published | None:
        """
        What it tells about this version; without versions, what it told after so many other messages.

        None: it wants to be asked, which some servers say only some time after the greeting.
        """
        while not self.offers("diagnosticProvider"):
            known = self._published.get(document.path)
            if known is not None:
                if known.version is not None and known.version >= document.version:
                    return known
                if known.version is None and known.number > seen:
                    return await self._wait_settled(document.path, known)
            if self._peer.ended.done():
                raise LspError(f"The language server {self.spec.name!r} gave no answer: {self.end_reason}")
            await self._next_news()
        return None

    async def _wait_settled(self, path: str, known: Published) -> Published:
        while True:
            await asyncio.sleep(SETTLE_SECONDS)
            last = self._published.get(path, known)
            if last.number == known.number:
                return last
            known = last

    async def _next_news(self) -> None:
        news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(news)
        try:
            await asyncio.wait((news, self._peer.ended), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waiting.remove(news)

    def _wake(self) -> None:
        for news in self._waiting:
            if not news.done():
                news.set_result(None)

    # What it sends by itself

    def _take_notice(self, method: str, params: Any) -> None:
        match method, params:
            case "textDocument/publishDiagnostics", {"uri": uri, "diagnostics": list(listed)}:
                if path := path_of(uri):
                    version = params.get("version")
                    self._number += 1
                    self._published.pop(path, None)
                    known = version if isinstance(version, int) else None
                    self._published[path] = Published(parse_problems(listed), known, self._number)
                    if len(self._published) > MAX_PUBLISHED:
                        del self._published[next(iter(self._published))]
                    self._wake()
            case "$/progress", {"token": str() | int() as token, "value": {"kind": "begin"}}:
                if len(self._progress) < MAX_PROGRESS:
                    self._progress[str(token)] = None
            case "$/progress", {"token": str() | int() as token, "value": {"kind": "end"}}:
                self._progress.pop(str(token), None)
                self._wake()

    def _answer(self, method: str, params: Any) -> Any:
        """The answer to a request of the server. Nothing that it asks for changes a file or reaches a person."""
        match method:
            case "workspace/configuration":
                items = params.get("items") if isinstance(params, Mapping) else None
                return [self._setting(each) for each in (items if isinstance(items, list) else [])[:1000]]
            case "workspace/workspaceFolders":
                return [{"uri": uri_of(self.root), "name": Path(self.root).name}]
            case "workspace/applyEdit":
                return {"applied": False, "failureReason": "handrail lets no language server change files."}
            case "window/showDocument":
                return {"success": False}
            case "window/showMessageRequest":
                return None
            case "client/registerCapability":
                self._register(params)
                return None
            case _ if method in FOR_EDITORS or method.endswith("/refresh"):
                return None
            case _:
                raise LspAnswerError(f"{method[:100]} is not offered.", METHOD_NOT_FOUND)

    def _register(self, params: Any) -> None:
        match params:
            case {"registrations": list(listed)}:
                methods = [each.get("method") for each in listed if isinstance(each, Mapping)]
                if "textDocument/diagnostic" in methods:
                    self._registered.add("diagnosticProvider")
                    self._wake()

    def _setting(self, item: object) -> Any:
        section = item.get("section") if isinstance(item, Mapping) else None
        value: Any = self.spec.settings
        for step in section.split(".") if isinstance(section, str) and section else ():
            value = value.get(step) if isinstance(value, Mapping) else None
        return value if isinstance(section, str) else dict(self.spec.settings)

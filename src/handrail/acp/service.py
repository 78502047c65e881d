"""The methods of the Agent Client Protocol, version 1, that editors call."""

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from weakref import WeakValueDictionary

from handrail import __version__
from handrail.acp.choices import config_options, set_mode, set_option
from handrail.acp.connection import AUTH_REQUIRED, INVALID_REQUEST, NOT_FOUND, EditorConnection, Method, MethodResult
from handrail.acp.params import invalid, list_of, read_folder, read_servers, text_of
from handrail.acp.prompt import read_prompt
from handrail.acp.session import EditorSession
from handrail.conversation.blocks import Json
from handrail.conversation.logger import get_logger
from handrail.conversation.plain import plain
from handrail.errors import JsonRpcError, ProviderSetupError
from handrail.session.spec import SessionSpec
from handrail.session.state_folder import session_store
from handrail.session.transcript import TranscriptOptions
from handrail.stdio.streams import LineSource, Out
from handrail.transcripts.writer import new_id

log = get_logger(__name__)

VERSION = 1
PAGE = 50
"""How many sessions one list holds."""
CAPABILITIES = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True},
    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}, "additionalDirectories": {}},
}
SIGN_IN = "handrail signs in nowhere. Set ANTHROPIC_API_KEY or OPENAI_API_KEY in the environment of the editor's agent."


class AcpService:
    """Serves one editor. `spec` is what every session is opened from, in the folder that the editor names."""

    def __init__(self, out: Out, spec: SessionSpec, env: Mapping[str, str]) -> None:
        self._spec = spec
        self._env = env
        self._sessions: dict[str, EditorSession] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._stopped = asyncio.Event()
        self._connection = EditorConnection(out)
        self._methods: Mapping[str, Method] = {
            "authenticate": self._authenticate,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
            "session/prompt": self._prompt,
        }
        early = {name: partial(_refuse_early, name) for name in self._methods}
        self._connection.methods = {**early, "initialize": self._initialize}
        self._connection.notifications = {"session/cancel": lambda params: self._session(params).cancel()}

    async def serve(self, lines: LineSource) -> None:
        """Serve the editor until its input ends, or `stop`; nothing of its sessions runs on afterwards."""
        listening = asyncio.ensure_future(self._connection.listen(lines))
        stopped = asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait({listening, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (listening, stopped):
                each.cancel()
            await asyncio.gather(listening, stopped, return_exceptions=True)
            self._connection.close()
            for session in self._sessions.values():
                session.cancel()
            await self._connection.settle()
            closing = (session.aclose() for session in self._sessions.values())
            for fault in filter(None, await asyncio.gather(*closing, return_exceptions=True)):
                log.error("a session was not closed", exc_info=fault)

    def stop(self) -> None:
        """End soon."""
        self._stopped.set()

    async def _initialize(self, params: Json) -> MethodResult:
        version = params.get("protocolVersion")
        if not isinstance(version, int) or isinstance(version, bool):
            raise invalid(f"protocolVersion is {version!r:.100}, not a whole number. handrail speaks {VERSION}.")
        self._connection.methods = {**self._methods, "initialize": self._initialize}
        about = {"name": "handrail", "title": "handrail", "version": __version__}
        return MethodResult(
            {"protocolVersion": VERSION, "agentCapabilities": CAPABILITIES, "agentInfo": about, "authMethods": []}
        )

    async def _authenticate(self, _params: Json) -> MethodResult:
        raise invalid(SIGN_IN)

    # Sessions

    async def _new(self, params: Json) -> MethodResult:
        session = self._open(new_id(), params, resumed=False)
        return MethodResult({"sessionId": session.id, **session.state()}, session.send_commands)

    async def _load(self, params: Json) -> MethodResult:
        name = text_of(params, "sessionId")
        async with self._turn(name):
            session = await self._reopen(name, params)
            await session.send_history()
        return MethodResult(session.state(), session.send_commands)

    async def _resume(self, params: Json) -> MethodResult:
        name = text_of(params, "sessionId")
        async with self._turn(name):
            session = await self._reopen(name, params)
        return MethodResult(session.state(), session.send_commands)

    def _turn(self, name: str) -> asyncio.Lock:
        """Requests that open or close one session take turns: it can be open once, and closing it takes a while."""
        return self._turns.setdefault(name, asyncio.Lock())

    async def _reopen(self, name: str, params: Json) -> EditorSession:
        if name in self._sessions:
            await self._end(name)
        if not session_store(self._env).has(name):
            raise JsonRpcError(f"There is no session {name!r:.200}. session/list tells which there are.", NOT_FOUND)
        return self._open(name, params, resumed=True)

    def _open(self, name: str, params: Json, *, resumed: bool) -> EditorSession:
        spec, servers = self._spec, read_servers(list_of(params, "mcpServers"))
        folders = [read_folder(each) for each in list_of(params, "additionalDirectories")]
        spec = replace(
            spec,
            cwd=Path(read_folder(params.get("cwd"))),
            tools=replace(spec.tools, mcp_servers={**spec.tools.mcp_servers, **servers}),
            flags=replace(spec.flags, folders=(*spec.flags.folders, *folders)),
            transcript=TranscriptOptions(resume=name) if resumed else TranscriptOptions(session_id=name),
        )
        try:
            session = EditorSession(name, self._connection, spec, self._env)
        except ProviderSetupError as error:
            if "There is no key" not in str(error):
                raise
            raise JsonRpcError(str(error), AUTH_REQUIRED) from error
        self._sessions[name] = session
        return session

    async def _list(self, params: Json) -> MethodResult:
        return MethodResult(listed_sessions(self._env, params.get("cwd"), params.get("cursor")))

    async def _close(self, params: Json) -> MethodResult:
        name = text_of(params, "sessionId")
        async with self._turn(name):
            await self._end(self._session(params).id)
        return MethodResult({})

    async def _delete(self, params: Json) -> MethodResult:
        name, store = text_of(params, "sessionId"), session_store(self._env)
        async with self._turn(name):
            if name in self._sessions:
                await self._end(name)
            if store.has(name):
                store.remove(store.find(name, "/"))
        return MethodResult({})

    async def _end(self, name: str) -> None:
        """Close an open session, with the prompt that it works on."""
        await self._sessions.pop(name).aclose()

    def _session(self, params: Json) -> EditorSession:
        name = text_of(params, "sessionId")
        if name not in self._sessions:
            raise JsonRpcError(f"The session {name!r:.200} is not open. Use session/new or session/load.", NOT_FOUND)
        return self._sessions[name]

    # What goes on in one

    async def _set_mode(self, params: Json) -> MethodResult:
        session = self._session(params)
        set_mode(session.session, text_of(params, "modeId"))
        return MethodResult({}, session.send_mode)

    async def _set_option(self, params: Json) -> MethodResult:
        session = self._session(params)
        await set_option(session.session, text_of(params, "configId"), params.get("value"))
        return MethodResult({"configOptions": config_options(session.session)}, session.send_mode)

    async def _prompt(self, params: Json) -> MethodResult:
        session, message = self._session(params), read_prompt(list_of(params, "prompt"))
        if not message.content:
            raise invalid("The prompt is empty. Send a text, an image or a resource.")
        return MethodResult(await session.prompt(message))


async def _refuse_early(method: str, _params: Json) -> MethodResult:
    raise JsonRpcError(f"{method} came before initialize. Send initialize first.", INVALID_REQUEST)


def listed_sessions(env: Mapping[str, str], folder: object, cursor: object) -> Json:
    """A page of the sessions, of one folder or of all, the newest first."""
    cursor = "0" if cursor is None else cursor
    if not isinstance(cursor, str) or not (cursor.isdecimal() and cursor.isascii() and len(cursor) < 10):
        raise invalid(f"cursor is {cursor!r:.100}, which no list of sessions gave.")
    cwd = None if folder is None else os.path.realpath(read_folder(folder))
    found = [each for each in session_store(env).entries() if each.cwd.startswith("/") and cwd in (None, each.cwd)]
    start, end = int(cursor), int(cursor) + PAGE
    listed = [
        {"sessionId": each.id, "cwd": each.cwd, "title": plain(each.title) or None, "updatedAt": _moment(each.updated)}
        for each in found[start:end]
    ]
    return {"sessions": listed, **({"nextCursor": str(end)} if end < len(found) else {})}


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))

"""What MCP prescribes to a server: revisions, error codes, and the checks of one request of either era."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from handrail.errors import JsonRpcError
from handrail.mcp.dialect import ENCODED, LEGACY, MODERN, NAMED, PREFIX, UNSUPPORTED_VERSION
from handrail.mcp.messages import INVALID_PARAMS, Message
from handrail.records import record

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
HEADER_MISMATCH, MISSING_CAPABILITY = -32020, -32021
VERSION, CAPABILITIES, INFO, LOG_LEVEL, SERVER_INFO, SUBSCRIPTION = (
    f"{PREFIX}{name}"
    for name in ("protocolVersion", "clientCapabilities", "clientInfo", "logLevel", "serverInfo", "subscriptionId")
)
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
MAX_BYTES = 16 * 1024 * 1024
"""The most that one message of a client may have."""


@record
class ClientRequest:
    """A request or notification of a client; `id` None = a notification."""

    method: str
    params: Mapping[str, Any]
    id: int | str | None = None

    @property
    def meta(self) -> Mapping[str, Any]:
        """What the request says beside its parameters."""
        found = self.params.get("_meta")
        return found if isinstance(found, Mapping) else {}

    @property
    def is_modern(self) -> bool:
        """Whether it says by itself that there is no handshake."""
        return VERSION in self.meta

    def text(self, name: str) -> str:
        """A parameter that must be a text; JsonRpcError if it is not."""
        value = self.params.get(name)
        if not isinstance(value, str):
            raise JsonRpcError(f"{name!r} must be given, as a text.", INVALID_PARAMS)
        return value

    def object(self, name: str) -> Mapping[str, Any]:
        """A parameter that is an object, empty if it is not given; JsonRpcError if it is something else."""
        value = self.params.get(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise JsonRpcError(f"{name!r} must be an object.", INVALID_PARAMS)
        return value


@record
class ClientReply:
    """The answer of a client to a question of ours."""

    id: int | str
    message: Message


def parse_message(value: object) -> ClientRequest | ClientReply:
    """One message of a client; JsonRpcError if it is none."""
    match value:
        case {"jsonrpc": "2.0", "method": str(method), **rest}:
            params, number = rest.get("params", {}), rest.get("id")
            if not isinstance(params, Mapping):
                raise JsonRpcError("params must be an object.", INVALID_PARAMS)
            if (
                isinstance(number, bool)
                or not isinstance(number, int | str | None)
                or ("id" in rest and number is None)
            ):
                raise JsonRpcError("id must be a text or a whole number.", INVALID_REQUEST)
            return ClientRequest(method, params, number)
        case {"jsonrpc": "2.0", "id": int() | str() as number, **rest} if "result" in rest or "error" in rest:
            return ClientReply(number, {"id": number, **{str(key): each for key, each in rest.items()}})
        case _:
            raise JsonRpcError("This is not a JSON-RPC 2.0 message.", INVALID_REQUEST)


def id_of(value: object) -> int | str | None:
    """The id in what may be a request, for the answer that refuses it."""
    number = value.get("id") if isinstance(value, Mapping) else None
    return number if isinstance(number, int | str) and not isinstance(number, bool) else None


def refusal(number: int | str | None, error: JsonRpcError) -> Message:
    """The answer that is an error."""
    data = {} if error.data is None else {"data": error.data}
    return {"jsonrpc": "2.0", "id": number, "error": {"code": error.code, "message": str(error), **data}}


def check_meta(request: ClientRequest) -> None:
    """Refuse a request of 2026-07-28 that does not say what each must say."""
    version, capabilities = request.meta.get(VERSION), request.meta.get(CAPABILITIES)
    if not isinstance(version, str):
        raise JsonRpcError(f"_meta must hold {VERSION!r}.", INVALID_PARAMS)
    if not isinstance(capabilities, Mapping):
        raise JsonRpcError(f"_meta must hold {CAPABILITIES!r}.", INVALID_PARAMS)
    if version != MODERN:
        raise JsonRpcError(
            f"This server does not speak {version[:40]!r} without a handshake.",
            UNSUPPORTED_VERSION,
            {"supported": [MODERN], "requested": version},
        )


def check_headers(request: ClientRequest, headers: Mapping[str, str], parameters: Mapping[str, str]) -> None:
    """Refuse a request whose headers do not repeat its body; `parameters` are those that the tool's schema wants."""
    expected = {"mcp-method": request.method, **parameters}
    if isinstance(version := request.meta.get(VERSION), str):
        expected["mcp-protocol-version"] = version
    if isinstance(name := request.params.get(NAMED.get(request.method, "")), str):
        expected["mcp-name"] = name
    for header, value in expected.items():
        given = headers.get(header)
        if given is None or decode_header(given) != decode_header(value):
            raise JsonRpcError(f"The header {header!r} must repeat what the request says.", HEADER_MISMATCH)


def decode_header(value: str) -> str:
    """The text that a header stands for; as it is if it is not in base64."""
    if not ENCODED.fullmatch(value):
        return value
    try:
        return base64.b64decode(value[len("=?base64?") : -len("?=")], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return value


def agreed_version(wanted: object) -> str:
    """The revision that a handshake ends with."""
    return wanted if isinstance(wanted, str) and wanted in LEGACY else LEGACY[0]

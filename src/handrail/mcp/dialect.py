"""
What the revisions of the protocol have different on the wire.

    until 2025-11-25    a handshake (`initialize`) opens a session
    2026-07-28          no session: each request says who asks, in `_meta` and in headers
"""

import base64
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from handrail.records import record

MODERN = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
UNSUPPORTED_VERSION = -32022
CLIENT = {"name": "handrail", "version": "1"}
PREFIX = "io.modelcontextprotocol/"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter that the header `Mcp-Name` repeats, by method."""
PLAIN = re.compile(r"[\x20-\x7e]*")
ENCODED = re.compile(r"=\?base64\?.*\?=")


@record
class Dialect:
    """How requests to one server are written."""

    version: str = ""
    """Empty before the handshake."""
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    """What we offer to the server."""
    cancels_by_closing: bool = False
    """A request is cancelled by closing its answer, not by a notification."""

    @property
    def is_modern(self) -> bool:
        """Whether there is no handshake and no session."""
        return self.version == MODERN

    def with_envelope(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The parameters of a request with what every request has to say."""
        if not self.is_modern:
            return params
        envelope = {
            f"{PREFIX}protocolVersion": self.version,
            f"{PREFIX}clientInfo": CLIENT,
            f"{PREFIX}clientCapabilities": self.capabilities,
        }
        return {**params, "_meta": {**params.get("_meta", {}), **envelope}}

    def headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        """The headers of a message, for wires that have some."""
        if not self.version:
            return {}
        headers = {"mcp-protocol-version": self.version}
        if self.is_modern:
            headers["mcp-method"] = method
            if isinstance(name := params.get(NAMED.get(method, "")), str):
                headers["mcp-name"] = header_value(name)
        return headers


UNDECIDED = Dialect()


def header_value(text: str) -> str:
    """A text as the value of a header; in base64, and marked so, if it would not arrive as it is."""
    if PLAIN.fullmatch(text) and text == text.strip() and not ENCODED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="

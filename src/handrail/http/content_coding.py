"""Undoes the compression of answers, within a bound: a few kilobytes can stand for gigabytes."""

import zlib

from handrail.errors import TransportError

ACCEPTED = "gzip, deflate"
CODINGS = frozenset(("gzip", "x-gzip", "deflate"))
AUTOMATIC = 32 + zlib.MAX_WBITS
"""Either header, gzip's or zlib's."""
MAX_MEMBERS = 100
"""Parts of a gzip body; each one costs a copy of the rest."""


def codings(header: str) -> tuple[str, ...]:
    """The codings of a content-encoding header, in the order in which they were applied."""
    names = (name.strip().lower() for name in header.split(","))
    return tuple(name for name in names if name and name != "identity")


def decode_body(body: bytes, header: str, max_bytes: int) -> tuple[bytes, bool]:
    """
    The body without its content codings, and whether it goes on beyond `max_bytes`.

    A body that breaks off is decoded as far as it goes. Raises TransportError for a coding that was not asked for, or
    more than one, or bytes that are not of it.
    """
    applied = codings(header)
    if not applied:
        return body[:max_bytes], len(body) > max_bytes
    if len(applied) > 1 or applied[0] not in CODINGS:
        raise TransportError("coding", f"the answer is encoded as {header[:100]!r}, which was not asked for")
    try:
        return _inflate(body, AUTOMATIC, max_bytes)
    except zlib.error as error:
        if applied[0] != "deflate":
            raise TransportError("coding", f"the answer is not what it says, {applied[0]}: {error}") from error
    try:
        return _inflate(body, -zlib.MAX_WBITS, max_bytes)  # some servers leave out zlib's header
    except zlib.error as error:
        raise TransportError("coding", f"the answer is not what it says, deflate: {error}") from error


def _inflate(body: bytes, window: int, max_bytes: int) -> tuple[bytes, bool]:
    out = bytearray()
    for _ in range(MAX_MEMBERS):
        decoder = zlib.decompressobj(window)
        out += decoder.decompress(body, max_bytes + 1 - len(out))
        body = decoder.unused_data if decoder.eof and window == AUTOMATIC else b""
        if len(out) > max_bytes or not body:
            break
    return bytes(out[:max_bytes]), len(out) > max_bytes or bool(body)

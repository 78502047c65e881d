"""What servers answer, as blocks for the model. Everything in it is untrusted."""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from handrail.conversation.blocks import Image, ResultBlock, Text
from handrail.tools.output import McpMeta, Output, json_text

MAX_BLOCKS = 500
MAX_IMAGE = 5 * 1024 * 1024
MAX_FILE = 32 * 1024 * 1024
RESULT_CHARS = 100_000
"""The most characters of a result before the whole goes to disk."""
IMAGES = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8", "image/webp": b"RIFF"}
"""The image types that models accept, and how each begins. A refused image would spoil all later requests."""

SaveFile: TypeAlias = Callable[[bytes, str], str]
"""Stores bytes of that type and returns where they are; OSError if that fails."""


def no_files(_data: bytes, _kind: str) -> str:
    """For answers whose files are not kept."""
    raise OSError("files of servers are not kept here")


def output_of(answer: Mapping[str, Any], server: str, save: SaveFile = no_files) -> Output:
    """The output of a call, for the model and for programs."""
    content = answer.get("content")
    listed = content if isinstance(content, list) else []
    blocks = tuple(content_block(each, server, save) for each in listed[:MAX_BLOCKS])
    if len(listed) > MAX_BLOCKS:
        blocks += (Text(f"[{len(listed) - MAX_BLOCKS:,} more parts are left out]"),)
        content = listed[:MAX_BLOCKS]
    structured = answer.get("structuredContent")
    if structured is not None and not blocks:
        blocks = (Text(json_text(structured)),)
    meta = answer.get("_meta")
    data = {"content": content, **({"structuredContent": structured} if structured is not None else {})}
    return Output(
        blocks=blocks,
        data=data,
        mcp=McpMeta(meta if isinstance(meta, Mapping) else {}, structured),
        is_error=answer.get("isError") is True,
    )


def content_block(value: object, server: str, save: SaveFile) -> ResultBlock:
    """One part of an answer."""
    match value:
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": "image", "data": str(data), "mimeType": str(kind)}:
            return image_block(data, kind, save)
        case {"type": "audio", "data": str(data), "mimeType": str(kind)}:
            return file_block(data, kind, "audio", save)
        case {"type": "resource_link", "uri": str(uri), **rest}:
            return Text(f"[{rest.get('name') or 'resource'}: {uri}]")
        case {"type": "resource", "resource": Mapping() as resource}:
            return resource_block(resource, server, save)
        case {"type": str(kind)}:
            return Text(f"[{kind} content, which cannot be shown here]")
        case _:
            return Text("[content that is not understood]")


def resource_block(resource: Mapping[str, Any], server: str, save: SaveFile) -> ResultBlock:
    """A resource that came with an answer, or was read."""
    match resource:
        case {"uri": str(uri), "text": str(text)}:
            return Text(f"[resource of {server} at {uri}]\n{text}")
        case {"uri": str(), "blob": str(data), "mimeType": str(kind)} if kind in IMAGES:
            return image_block(data, kind, save)
        case {"uri": str(uri), "blob": str(data), **rest}:
            return file_block(data, str(rest.get("mimeType") or "data"), f"resource of {server} at {uri}", save)
        case _:
            return Text("[a resource that is not understood]")


def image_block(data: str, kind: str, save: SaveFile) -> ResultBlock:
    """An image, if models accept it; else a note where it is."""
    if kind not in IMAGES or len(data) > MAX_IMAGE:
        return file_block(data, kind, "image", save)
    try:
        begins = base64.b64decode(data, validate=True).startswith(IMAGES[kind])
    except ValueError:
        begins = False
    return Image(data, kind) if begins else Text(f"[what is said to be {kind} and is not]")


def file_block(data: str, kind: str, what: str, save: SaveFile) -> Text:
    """A note about bytes that no model reads: where they are."""
    if len(data) > MAX_FILE:
        return Text(f"[{what} of the type {kind[:100]!r}: {len(data):,} characters in base64, which is too much]")
    try:
        content = base64.b64decode(data, validate=True)
        return Text(f"[{what} of the type {kind[:100]!r}, {len(content):,} bytes, saved in {save(content, kind)}]")
    except binascii.Error:
        return Text(f"[{what} of the type {kind[:100]!r}, which is broken]")
    except OSError as error:
        return Text(f"[{what} of the type {kind[:100]!r}, which cannot be shown here: {error.strerror or error}]")

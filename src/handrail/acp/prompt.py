"""A prompt as editors send it: text, images, links and embedded resources, as one message of the user."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from handrail.acp.params import invalid, text_of
from handrail.conversation.blocks import Document, Image, Json, Text, UserBlock
from handrail.conversation.messages import UserMessage

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
PDF = "application/pdf"
MAX_IMAGE = 600_000
"""Characters of a picture that still fits into a line."""


def read_prompt(blocks: Sequence[Any]) -> UserMessage:
    """The message; JsonRpcError if a block is not understood."""
    content: list[UserBlock] = []
    words = ""
    embedded: list[UserBlock] = []
    for block in blocks:
        if not isinstance(block, Mapping):
            raise invalid(f"A block of the prompt is {block!r:.100}, not an object.")
        match block.get("type"):
            case "text":
                words += text_of(block, "text")
            case "resource_link":
                words += f"{'' if not words or words[-1].isspace() else ' '}{mention(text_of(block, 'uri'))} "
            case "image":
                content.append(_image(text_of(block, "data"), text_of(block, "mimeType")))
            case "resource":
                embedded.append(_resource(block.get("resource")))
            case kind:
                raise invalid(f"A block of the type {kind!r} cannot be used. Send text, images or resources.")
    first = (Text(words),) if words.strip() else ()
    return UserMessage((*first, *content, *embedded))


def mention(uri: str) -> str:
    """A link within the text: a file is named with `@`, as people do, so that the model gets it under the rules."""
    try:
        place = urlsplit(uri)
    except ValueError:
        return uri
    if place.scheme not in ("", "file"):
        return uri
    return "@" + re.sub(r"([\s\\])", r"\\\1", unquote(place.path))


def _image(data: str, media_type: str) -> Image:
    if media_type not in IMAGES:
        raise invalid(f"An image of the type {media_type!r} cannot be used. Send one of {', '.join(IMAGES)}.")
    return Image(data, media_type)


def _resource(resource: object) -> UserBlock:
    match resource:
        case {"uri": str(uri), "text": str(text)}:
            return Text(f"{uri}:\n{fence(text)}")
        case {"uri": str(), "blob": str(blob), "mimeType": str(media_type)} if media_type in IMAGES:
            return Image(blob, media_type)
        case {"uri": str(uri), "blob": str(blob), "mimeType": "application/pdf"}:
            return Document(blob, PDF, uri)
        case {"uri": str(uri), "blob": str()}:
            raise invalid(f"The resource {uri!r} is neither text, an image nor a PDF. Send a link to it.")
        case _:
            raise invalid("A resource of the prompt has no uri, or neither text nor blob.")


def fence(text: str) -> str:
    """The text as a block of code that nothing in it ends; what it names with `@` is not looked for."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text.removesuffix(chr(10))}\n{fence}"


def prompt_chunks(message: UserMessage) -> Iterator[Json]:
    """The words and images of a message, as content that editors show."""
    for block in message.content:
        match block:
            case Text(text):
                yield {"type": "text", "text": text}
            case Image() if shown := image_content(block):
                yield shown
            case _:
                pass


def image_content(image: Image) -> Json:
    """A picture as content that editors show; empty if it does not fit into a line."""
    is_small = len(image.data) <= MAX_IMAGE
    return {"type": "image", "data": image.data, "mimeType": image.media_type} if is_small else {}

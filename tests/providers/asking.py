"""Requests, and providers that ask a loopback server."""

from typing import Any

from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.conversation.request import History, Request
from handrail.conversation.stream import StreamEvent
from handrail.http.client import HttpClient
from handrail.providers import anthropic, openai_chat, openai_responses
from handrail.providers.client import Endpoint, Provider
from handrail.testing.model_server import ModelServer
from tests.providers.virtual_clock import VirtualClock

APIS = {"anthropic": anthropic.API, "openai": openai_chat.API, "openai-responses": openai_responses.API}

OPENED: list[Provider] = []  # closed after each test


def question(text: str = "Hi", **options: Any) -> Request:
    return Request(model="m", history=History([UserMessage((Text(text),))]), **options)


def asking(server: ModelServer, api: str = "anthropic", **options: Any) -> Provider:
    base = server.url if api == "anthropic" else f"{server.url}/v1"
    options = {"clock": VirtualClock(), "random": lambda: 1.0, **options}
    provider = Provider(APIS[api], Endpoint(base), HttpClient({}), **options)
    OPENED.append(provider)
    return provider


async def everything(provider: Provider, request: Request, **options: Any) -> list[StreamEvent]:
    return [event async for event in provider.stream(request, **options)]

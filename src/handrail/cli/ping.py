"""`handrail doctor --ping`: ask the model for one word, to see that key, address and name work together."""

import asyncio
import time
from collections.abc import Mapping

from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.conversation.request import History, Request, ThinkingOptions
from handrail.errors import ProviderSetupError
from handrail.loop.side_request import side_request
from handrail.providers.choose import ModelOptions
from handrail.session.models.choose import choose_model

PATIENCE = 60.0
"""Seconds; a local server may have to load the model first."""
MAX_TOKENS = 200


def ping(options: ModelOptions, env: Mapping[str, str]) -> tuple[bool, str]:
    """Whether the model answers, and what it said or what is wrong."""
    try:
        return asyncio.run(_ask(options, env))
    except ProviderSetupError as error:
        return False, str(error)
    except TimeoutError:
        return False, f"it gave no answer within {PATIENCE:g} seconds. Is the server running, and can it be reached?"


async def _ask(options: ModelOptions, env: Mapping[str, str]) -> tuple[bool, str]:
    chosen = choose_model(options, env)
    history = History([UserMessage((Text("Answer with the one word: pong"),))])
    request = Request(chosen.name, history, max_tokens=MAX_TOKENS, thinking=ThinkingOptions("off"))
    started = time.monotonic()
    try:
        async with asyncio.timeout(PATIENCE):
            answer = await side_request(chosen.model, request)
    finally:
        await chosen.close()
    if answer.failure is not None:
        return False, answer.failure.report
    took = time.monotonic() - started
    said = " ".join(answer.text.split())[:60]
    return True, f"answered {said!r} after {took:.1f} s ({answer.model})"

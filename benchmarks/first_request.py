"""What floor.py does, through handrail.providers: python benchmarks/first_request.py URL"""

import asyncio
import sys

from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.conversation.request import History, Request
from handrail.conversation.stream import Delta
from handrail.providers.choose import ModelOptions, choose, open_provider


async def main(url: str) -> None:
    """Ask once."""
    choice = choose(ModelOptions(provider="anthropic", base_url=url, model="m"), {})
    provider = open_provider(choice, {})
    answer = provider.stream(Request(choice.model, History([UserMessage((Text("Hi"),))])))
    texts = [event.text async for event in answer if isinstance(event, Delta)]
    await provider.aclose()
    print("".join(texts))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

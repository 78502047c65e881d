"""Stop an agent in the middle. What it said and did so far stays in the conversation, which can go on."""

import asyncio

from handrail import Agent, tool
from handrail.loop.events import RunEnded
from handrail.tools.events import CallStarted


@tool(read_only=True)
async def ponder(question: str) -> str:
    """Think about a question for an hour."""
    await asyncio.sleep(3600)
    return "42"


async def main() -> None:
    async with Agent(tools=[ponder]) as agent:
        async for event in agent.run("Ponder the meaning of life."):
            match event:
                case CallStarted():
                    print("that takes too long")
                    agent.interrupt()
                case RunEnded():
                    print("ended:", event.move.value)
        print((await agent.ask("Then just guess.")).text)


if __name__ == "__main__":
    asyncio.run(main())

"""Several prompts are one conversation; a message may also come while the agent is still working."""

import asyncio

from handrail import Agent
from handrail.loop.events import QueuedMessageTaken, RequestSent, RunEnded


async def main() -> None:
    async with Agent() as agent:
        print((await agent.ask("My name is Ada.")).text)
        print((await agent.ask("What is my name?")).text)

        async for event in agent.run("Count to three."):
            match event:
                case RequestSent(turn=1):
                    agent.send("And then say goodbye.")
                case QueuedMessageTaken():
                    print("(the second message is taken)")
                case RunEnded():
                    print(event.text)


if __name__ == "__main__":
    asyncio.run(main())

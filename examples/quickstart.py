"""An agent in five lines. Needs a model: set ANTHROPIC_API_KEY, or OPENAI_BASE_URL for a server of your own."""

import asyncio

from handrail import Agent


async def main() -> None:
    async with Agent() as agent:
        answer = await agent.ask("Which Python files are in this folder?")
        print(answer.text)


if __name__ == "__main__":
    asyncio.run(main())

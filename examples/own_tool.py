"""A typed function is a tool: its signature is the schema, its docstring what the model reads."""

import asyncio

from handrail import Agent, ToolError, tool

PRICES = {"apple": 0.4, "pear": 0.6}


@tool(read_only=True, concurrency_safe=True)
async def price(fruit: str) -> str:
    """Look up the price of a fruit.

    Args:
        fruit: Its name, in the singular.
    """
    if fruit not in PRICES:
        raise ToolError(f"There is no price for {fruit!r}. Known are {', '.join(PRICES)}.")
    return f"{PRICES[fruit]} dollars"


async def main() -> None:
    async with Agent(tools=[price], builtin_tools=False) as agent:
        print((await agent.ask("What do an apple and a pear cost together?")).text)


if __name__ == "__main__":
    asyncio.run(main())

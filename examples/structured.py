"""A checked value instead of text: a Pydantic model that the last answer must fit."""

import asyncio

from pydantic import BaseModel

from handrail import Agent, Limits


class Person(BaseModel):
    name: str
    born: int


async def main() -> None:
    async with Agent(output=Person, limits=Limits(turns=10, dollars=0.50)) as agent:
        person = (await agent.ask("Who wrote the first program?")).structured
    print(person.name, "was born in", person.born)


if __name__ == "__main__":
    asyncio.run(main())

"""Rules and a callback: mails to colleagues are sent, others are refused with a reason the model can act on."""

import asyncio
from collections.abc import Mapping
from typing import Any

from handrail import Agent, Allow, Deny, Question, tool

SENT: list[str] = []


@tool(subject="to")
async def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    SENT.append(f"{to}: {text}")
    return "sent"


async def can_use_tool(name: str, given: Mapping[str, Any], question: Question) -> Allow | Deny:
    """Asked about what the rules leave open."""
    if str(given.get("to", "")).endswith("@example.org"):
        return Allow()
    return Deny(f"{given.get('to')!r} is not a colleague")


async def main() -> None:
    async with Agent(tools=[send_mail], deny=["send_mail(boss@example.org)"], can_use_tool=can_use_tool) as agent:
        answer = await agent.ask("Tell ann@example.org and bob@example.com that lunch is ready.")
        print(answer.text)
        for denial in answer.ended.denials:
            print(f"refused: {denial.use.name} to {denial.use.input['to']}: {denial.reason}")
    print("sent:", *SENT)


if __name__ == "__main__":
    asyncio.run(main())

"""Rails: what only reads may run by itself; for everything else somebody is asked, here a rule in a few lines."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from handrail import Agent, CarefulGate, Decision, Rails, Verdict, tool

if TYPE_CHECKING:
    from handrail.dispatch.gate import CallRequest

SENT: list[str] = []


@tool
async def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    SENT.append(f"{to}: {text}")
    return "sent"


class OnlyInside:
    """Mails may go to colleagues; all others are refused, with a reason the model can act on."""

    async def approve(self, request: "CallRequest", decision: Decision) -> Decision:
        receiver = str(request.use.input.get("to", ""))
        if request.tool is send_mail and receiver.endswith("@example.org"):
            return replace(decision, verdict=Verdict.ALLOW, reason="colleagues may get mail")
        return replace(decision, verdict=Verdict.DENY, reason=f"{receiver!r} is not a colleague")


async def main() -> None:
    async with Agent(tools=[send_mail], rails=Rails(CarefulGate(OnlyInside()))) as agent:
        answer = await agent.ask("Tell ann@example.org and bob@example.com that lunch is ready.")
        print(answer.text)
        for denial in answer.ended.denials:
            print(f"refused: {denial.use.name} to {denial.use.input['to']}: {denial.reason}")
    print("sent:", *SENT)


if __name__ == "__main__":
    asyncio.run(main())

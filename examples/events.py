"""Everything that happens, as typed events: text as it streams, calls as they start and end, the bill at the end."""

import asyncio

from handrail import query
from handrail.conversation.stream import BlockStart, Delta
from handrail.loop.events import RunEnded
from handrail.tools.events import CallFinished, CallStarted


async def main() -> None:
    speaking = False
    async for event in query("Summarise the files in this folder."):
        match event:
            case BlockStart(kind=kind):
                speaking = kind == "text"
            case Delta(text=text) if speaking:
                print(text, end="", flush=True)
            case CallStarted(use=use):
                print(f"\n> {use.name} {dict(use.input)}")
            case CallFinished(outcome=outcome):
                print(f"< {outcome.use.name}: {outcome.status.value}")
            case RunEnded():
                tokens = sum(spent.tokens for spent in event.spent.values())
                cost = "price not known" if event.dollars is None else f"{event.dollars:.4f} dollars"
                print(f"\n[{event.why.value}: {event.turns} turns, {tokens} tokens, {cost}]")


if __name__ == "__main__":
    asyncio.run(main())

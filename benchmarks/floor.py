"""
The floor: what a person would write by hand with plain Python and httpx2. Ratios of the benchmarks are to this.

    python benchmarks/floor.py URL    asks once, says the text
"""

import asyncio
import json
import sys

import httpx2

BODY = {"model": "m", "max_tokens": 100, "stream": True, "messages": [{"role": "user", "content": "Hi"}]}


async def ask(client: httpx2.AsyncClient, url: str) -> tuple[str, list[dict[str, object]]]:
    """The text and the calls of one streamed answer."""
    texts: list[str] = []
    calls: list[dict[str, object]] = []
    fragments: dict[int, list[str]] = {}
    async with client.stream("POST", f"{url}/v1/messages", json=BODY) as response:
        async for line in response.aiter_lines():
            if not line.startswith("data: "):
                continue
            event = json.loads(line[6:])
            kind = event["type"]
            if kind == "content_block_delta":
                delta = event["delta"]
                if delta["type"] == "text_delta":
                    texts.append(delta["text"])
                elif delta["type"] == "input_json_delta":
                    fragments[event["index"]].append(delta["partial_json"])
            elif kind == "content_block_start" and event["content_block"]["type"] == "tool_use":
                fragments[event["index"]] = []
            elif kind == "content_block_stop" and event["index"] in fragments:
                calls.append(json.loads("".join(fragments[event["index"]])))
    return "".join(texts), calls


async def main(url: str) -> None:
    """Ask once."""
    async with httpx2.AsyncClient() as client:
        print((await ask(client, url))[0])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

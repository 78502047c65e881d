"""
The server that the conformance runner asks: `conformance_server.py PORT`.

Its tools, prompts and resources have the names that the scenarios prescribe. It is a program as users write them.
"""

import asyncio
import base64
import itertools
import json
import sys
from typing import Any

from handrail import Output, Progress, ProgressCallback, ToolError, tool
from handrail.gateway import (
    ROOTS,
    McpServer,
    audio_part,
    current_client,
    elicitation,
    image_part,
    mcp_output,
    resource_part,
    sampled_text,
    sampling,
    serve_http,
)
from handrail.serve.listen import BindAddress
from handrail.serve.server import until_signal

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WAV = base64.b64decode("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=")
TEXT = {"type": "string"}
PAUSE = 0.05


@tool(read_only=True, concurrency_safe=True)
async def test_simple_text() -> str:
    """Returns a text."""
    return "This is a simple text response for testing."


@tool(read_only=True, concurrency_safe=True)
async def test_image_content() -> Output:
    """Returns a picture."""
    return mcp_output(image_part(PNG, "image/png"))


@tool(read_only=True, concurrency_safe=True)
async def test_audio_content() -> Output:
    """Returns a sound."""
    return mcp_output(audio_part(WAV, "audio/wav"))


@tool(read_only=True, concurrency_safe=True)
async def test_embedded_resource() -> Output:
    """Returns a resource."""
    return mcp_output(resource_part("test://embedded-resource", "This is an embedded resource content."))


@tool(read_only=True, concurrency_safe=True)
async def test_multiple_content_types() -> Output:
    """Returns a text, a picture and a resource."""
    data = json.dumps({"test": "data", "value": 123})
    resource = resource_part("test://mixed-content-resource", data, "application/json")
    return mcp_output("Multiple content types test:", image_part(PNG, "image/png"), resource)


@tool(read_only=True, concurrency_safe=True)
async def test_tool_with_logging() -> str:
    """Tells its client what it does."""
    client = current_client()
    client.log("info", "Tool execution started")
    await asyncio.sleep(PAUSE)
    client.log("info", "Tool processing data")
    await asyncio.sleep(PAUSE)
    client.log("info", "Tool execution completed")
    return "Logged three messages."


@tool(read_only=True, concurrency_safe=True)
async def test_logging_tool() -> str:
    """Tells its client what it does, if that wants to know."""
    current_client().log("error", "A log message of a tool")
    return "Logged."


@tool(read_only=True, concurrency_safe=True)
async def test_error_handling() -> str:
    """Always fails."""
    raise ToolError("This tool intentionally returns an error for testing")


@tool(read_only=True, concurrency_safe=True)
async def test_tool_with_progress(progress: ProgressCallback) -> str:
    """Reports its progress."""
    for share in (0.0, 0.5, 1.0):
        progress(Progress(f"{share:.0%}", share))
        await asyncio.sleep(PAUSE)
    return "Done."


@tool(read_only=True, concurrency_safe=True)
async def test_sampling(prompt: str) -> str:
    """Asks the client's model."""
    return f"LLM response: {await current_client().sample(prompt, max_tokens=100)}"


@tool(read_only=True, concurrency_safe=True)
async def test_elicitation(message: str) -> str:
    """Asks the person."""
    fields = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    answer = await current_client().elicit(message, fields)
    return f"User response: action={answer.action}, content={json.dumps(answer.content)}"


@tool(read_only=True, concurrency_safe=True)
async def test_elicitation_sep1034_defaults() -> str:
    """Asks with a form that has defaults."""
    fields: dict[str, Any] = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    answer = await current_client().elicit("Please check the values", fields)
    return f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content)}"


@tool(read_only=True, concurrency_safe=True)
async def test_elicitation_sep1330_enums() -> str:
    """Asks with a form that has all kinds of choices."""
    options = ["option1", "option2", "option3"]
    titled = [
        {"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)
    ]
    fields: dict[str, Any] = {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    answer = await current_client().elicit("Please choose", fields)
    return f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content)}"


@tool(read_only=True, concurrency_safe=True)
async def test_missing_capability() -> str:
    """Needs a client with a model."""
    return await current_client().sample("Anything", max_tokens=10)


@tool(read_only=True, concurrency_safe=True)
async def test_streaming_elicitation(progress: ProgressCallback) -> str:
    """Reports its progress, then asks."""
    current_client().log("info", "About to ask")
    progress(Progress("asking", 0.5))
    answer = await current_client().elicit("Go on?", {"ok": {"type": "boolean"}}, key="go_on")
    return f"The answer was {answer.action}."


@tool(read_only=True, concurrency_safe=True)
async def test_input_required_result_elicitation() -> str:
    """Asks for a name."""
    answer = await current_client().elicit("What is your name?", {"name": TEXT}, key="user_name")
    return f"Hello, {(answer.content or {}).get('name')}!"


@tool(read_only=True, concurrency_safe=True)
async def test_input_required_result_sampling() -> str:
    """Asks the client's model for a capital."""
    return await current_client().sample("What is the capital of France?", max_tokens=100, key="capital_question")


@tool(read_only=True, concurrency_safe=True)
async def test_input_required_result_list_roots() -> str:
    """Asks for the folders of the client."""
    roots = await current_client().roots(key="client_roots")
    return f"Roots: {', '.join(str(root.get('uri')) for root in roots)}"


@tool(read_only=True, concurrency_safe=True)
async def test_input_required_result_request_state() -> str:
    """Asks, and goes on only with the state that belongs to the question."""
    answer = await current_client().elicit("Please confirm", {"ok": {"type": "boolean"}}, key="confirm")
    return f"state-ok: {answer.action}"


@tool(read_only=True, concurrency_safe=True)
async def test_input_required_result_tampered_state() -> str:
    """Asks, and goes on only with the state that belongs to the question."""
    answer = await current_client().elicit("Please confirm", {"ok": {"type": "boolean"}}, key="confirm")
    return f"Confirmed: {answer.action}"


@tool(read_only=True, concurrency_safe=True)
async def test_input_required_result_multiple_inputs() -> str:
    """Asks the person, the model and the client at once."""
    answers = await current_client().ask(
        {
            "user_name": elicitation("What is your name?", {"name": TEXT}),
            "greeting": sampling("Generate a greeting", max_tokens=50),
            "client_roots": ROOTS,
        }
    )
    name = answers["user_name"].get("content", {}).get("name")
    return f"{sampled_text(answers['greeting'])} {name}, with {len(answers['client_roots']['roots'])} roots"


@tool(read_only=True, concurrency_safe=True)
async def test_input_required_result_multi_round() -> str:
    """Asks twice."""
    client = current_client()
    name = await client.elicit("Step 1: What is your name?", {"name": TEXT}, key="step1")
    color = await client.elicit("Step 2: What is your favorite color?", {"color": TEXT}, key="step2")
    return f"{(name.content or {}).get('name')} likes {(color.content or {}).get('color')}"


@tool(read_only=True, concurrency_safe=True)
async def test_input_required_result_capabilities() -> str:
    """Asks what its client can be asked."""
    client = current_client()
    every = {
        "user_name": elicitation("What is your name?", {"name": TEXT}),
        "greeting": sampling("Generate a greeting", max_tokens=50),
        "client_roots": ROOTS,
    }
    answers = await client.ask({key: each for key, each in every.items() if client.offers(each.method)})
    return f"Got {', '.join(answers)}"


server = McpServer(
    "handrail-conformance", [each for each in globals().values() if isinstance(each, type(test_simple_text))]
)
numbers = itertools.count(1)


def add_tool() -> None:
    """Offer one more tool."""

    async def added() -> str:
        """A tool that was added later."""
        return "added"

    server.add_tool(tool(name=f"added_{next(numbers)}", read_only=True)(added))


@tool(read_only=True, concurrency_safe=True)
async def test_trigger_tool_change() -> str:
    """Changes the list of tools."""
    add_tool()
    return "A tool was added."


@tool(read_only=True, concurrency_safe=True)
async def test_trigger_prompt_change() -> str:
    """Changes the list of prompts."""

    def added() -> str:
        """A prompt that was added later."""
        return "added"

    server.prompt(name=f"added_{next(numbers)}")(added)
    return "A prompt was added."


server.add_tool(test_trigger_tool_change)
server.add_tool(test_trigger_prompt_change)


def cities(begun: str) -> list[str]:
    """Words that begin so."""
    return [word for word in ("paris", "park", "party", "test1", "test2") if word.startswith(begun)]


@server.prompt()
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@server.prompt(complete={"arg1": cities})
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:  # noqa: N803  # the scenario calls it so
    """A prompt with a resource."""
    resource = resource_part(resourceUri, "Embedded resource content for testing.")
    return [resource, "Please process the embedded resource above."]


@server.prompt()
def test_prompt_with_image() -> list[Any]:
    """A prompt with a picture."""
    return [image_part(PNG, "image/png"), "Please analyze the image above."]


@server.prompt()
async def test_input_required_result_prompt() -> str:
    """A prompt that asks for its context."""
    question = "What context should the prompt use?"
    answer = await current_client().elicit(question, {"context": TEXT}, key="user_context")
    return f"Use this context: {(answer.content or {}).get('context')}"


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture."""
    return PNG


@server.resource("test://watched-resource", mime_type="text/plain")
def watched() -> str:
    """A text that may change."""
    return "Watched."


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:  # noqa: A002  # the scenario calls it so
    """Data by number."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


async def run(port: int) -> None:
    """Serve until the runner is done."""
    async with serve_http(server, BindAddress(port=port)) as address:
        print(f"{address.url}/mcp", flush=True)
        await until_signal()


if __name__ == "__main__":
    asyncio.run(run(int(sys.argv[1]) if len(sys.argv) > 1 else 0))

"""
handrail as an MCP server: its own tools, those of a program, and other servers, all behind its rules.

    server = McpServer("weather", tools=[forecast], allow=["forecast"])
    asyncio.run(serve_stdio(server))
"""

from handrail.gateway.client import (
    ROOTS,
    ClientQuestion,
    McpClient,
    current_client,
    elicitation,
    sampled_text,
    sampling,
)
from handrail.gateway.client_rules import ClientRules
from handrail.gateway.content import audio_part, image_part, mcp_output, resource_part, text_part
from handrail.gateway.offering import McpServer
from handrail.gateway.run import serve_http
from handrail.gateway.stdio import serve_stdio

__all__ = [
    "ROOTS",
    "ClientQuestion",
    "ClientRules",
    "McpClient",
    "McpServer",
    "audio_part",
    "current_client",
    "elicitation",
    "image_part",
    "mcp_output",
    "resource_part",
    "sampled_text",
    "sampling",
    "serve_http",
    "serve_stdio",
    "text_part",
]

"""
How providers differ, as data. A row applies to a host and a model name; the first row that matches wins.

A server that keeps to its format needs no row: unknown hosts get the plain row of their api.
"""

import re
from dataclasses import replace
from typing import Literal
from urllib.parse import urlsplit

from handrail.records import record


@record
class Quirks:
    """What a writer of requests must observe."""

    tool_references: bool = False  # the api loads deferred tools by itself (defer_loading, tool_reference)
    cache_marks: bool = False  # cache_control is understood
    max_tokens_field: str = "max_tokens"
    null_content: bool = True  # content null beside calls; else ""
    replay_reasoning: Literal["never", "always", "details"] = "never"
    thinking_field: Literal["reasoning_effort", "thinking", "enable_thinking", "reasoning", "none"] = "reasoning_effort"
    json_schema: bool = False  # the server is known to hold answers to a JSON Schema
    call_ids: str = r"[a-zA-Z0-9_.:-]{1,64}"  # other ids are replaced by a stable one
    encrypted_reasoning: bool = False  # reasoning comes encrypted and must be requested
    files: bool = False  # documents may be sent as files
    images: bool = True
    stream_options: bool = True
    web_search: str = ""  # the type of the server's own tool that searches the web
    cache_key: bool = False  # prompt_cache_key is understood; servers that check their input refuse a field they lack


ANTHROPIC = Quirks(cache_marks=True, call_ids=r"[a-zA-Z0-9_-]{1,64}", files=True)
CHAT = Quirks()
RESPONSES = Quirks(files=True, cache_key=True)

ANTHROPIC_SEARCH, OPENAI_SEARCH = "web_search_20260318", "web_search"
OPENAI_HOSTS = r"(.*\.)?api\.openai\.com|.*\.azure\.com"
REASONING_MODELS = r"(.*[/.])?(o\d|gpt-5|gpt-oss|codex).*"

# (api, host pattern, model pattern, quirks)
ROWS: tuple[tuple[str, str, str, Quirks], ...] = (
    ("anthropic", r"api\.anthropic\.com", r"claude-(3|2|instant)\b.*", ANTHROPIC),
    (
        "anthropic",
        r"api\.anthropic\.com",
        r".*",
        replace(ANTHROPIC, tool_references=True, json_schema=True, web_search=ANTHROPIC_SEARCH),
    ),
    (
        "openai",
        OPENAI_HOSTS,
        r".*",
        replace(CHAT, max_tokens_field="max_completion_tokens", files=True, json_schema=True, cache_key=True),
    ),
    (
        "openai",
        r"api\.deepseek\.com",
        r".*",
        replace(CHAT, thinking_field="thinking", replay_reasoning="always", images=False),
    ),
    ("openai", r"api\.moonshot\.(ai|cn)", r".*", replace(CHAT, thinking_field="thinking", replay_reasoning="always")),
    (
        "openai",
        r"(api\.z\.ai|open\.bigmodel\.cn)",
        r".*",
        replace(CHAT, thinking_field="thinking", replay_reasoning="always"),
    ),
    ("openai", r"dashscope.*\.aliyuncs\.com", r".*", replace(CHAT, thinking_field="enable_thinking")),
    (
        "openai",
        r"api\.mistral\.ai",
        r".*",
        replace(CHAT, call_ids=r"[a-zA-Z0-9]{9}", null_content=False, thinking_field="none", stream_options=False),
    ),
    ("openai", r"openrouter\.ai", r".*", replace(CHAT, thinking_field="reasoning", replay_reasoning="details")),
    ("openai", r"(localhost|127\.0\.0\.1|\[?::1\]?|0\.0\.0\.0)", r".*", replace(CHAT, null_content=False)),
    (
        "openai-responses",
        OPENAI_HOSTS,
        REASONING_MODELS,
        replace(RESPONSES, encrypted_reasoning=True, json_schema=True, web_search=OPENAI_SEARCH),
    ),
    ("openai-responses", OPENAI_HOSTS, r".*", replace(RESPONSES, json_schema=True, web_search=OPENAI_SEARCH)),
    ("openai-responses", r".*", REASONING_MODELS, replace(RESPONSES, encrypted_reasoning=True)),
)
PLAIN = {"anthropic": ANTHROPIC, "openai": CHAT, "openai-responses": RESPONSES}


def quirks_of(api: str, base_url: str, model: str) -> Quirks:
    """The row for this server and model."""
    host = urlsplit(base_url).hostname or ""
    for row_api, host_pattern, model_pattern, quirks in ROWS:
        if row_api == api and re.fullmatch(host_pattern, host) and re.fullmatch(model_pattern, model, re.IGNORECASE):
            return quirks
    return PLAIN[api]

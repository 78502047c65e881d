"""
Which recording answers a request, and what differs though it is not comparable.

    exact           everything must be equal
    conversation    the model and all that was said must be; the system prompt, the tools and the options need not
    loose           the prompts, and what the model said and called, must be; results and the model need not either
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias, cast, get_args

from handrail.conversation.context import is_note_about_tools
from handrail.errors import CassetteError
from handrail.providers.cassette.canonical import Canonical, digest

Match: TypeAlias = Literal["exact", "conversation", "loose"]
MATCHES: tuple[str, ...] = get_args(Match)

SYSTEM_ROLES = ("system", "developer")
SYSTEM_FIELDS = ("system", "instructions")
RESULT_KINDS = ("tool_result", "function_call_output")
THOUGHT_KINDS = ("thinking", "redacted_thinking", "reasoning")
MEMORY_INTRODUCTION = re.compile(r"(?<=<memory>\n)[^<]*")
PROGRAM_TEXTS = ("<memory>", "<system-reminder>")
MAX_VALUE = 40
MAX_NAMES = 6


def check_match(match: str) -> Match:
    """The way of matching of this name; CassetteError if there is none."""
    if match not in MATCHES:
        raise CassetteError(f"match is {match!r}. Choose one of {', '.join(MATCHES)}.")
    return cast("Match", match)


def comparable(request: Canonical, match: Match) -> dict[str, Any]:
    """The part of a request that must be equal, as a JSON value."""
    if match == "exact":
        return {"api": request.api, **request.head, "messages": list(request.messages)}
    spoken = [message for message in request.messages if not _is_system(message)]
    if match == "conversation":
        kept = (_with_content(message, _conversation_blocks) for message in spoken)
        return {"api": request.api, "model": request.head.get("model", ""), "messages": [*filter(None, kept)]}
    own = (_with_content(message, _loose_blocks) for message in spoken if not _is_result(message))
    return {"api": request.api, "messages": [*filter(None, own)]}


def match_key(request: Canonical, match: Match) -> str:
    """Equal for requests that one recording answers."""
    return digest(comparable(request, match))


def likeness(recorded: Canonical, asked: Canonical) -> tuple[bool, bool, int]:
    """How alike two requests are; the greatest is the best answer of several that match."""
    same = sum(recorded.head.get(name) == value for name, value in asked.head.items())
    return (
        recorded.key == asked.key,
        match_key(recorded, "conversation") == match_key(asked, "conversation"),
        same + (_system(recorded) == _system(asked)),
    )


def changes(recorded: Canonical, asked: Canonical) -> list[str]:
    """What differs between a recording and the request that it answers, in words."""
    found = [] if _system(recorded) == _system(asked) else ["the system prompt"]
    found += _tool_changes(_tools(recorded), _tools(asked))
    for name in sorted({*recorded.head, *asked.head} - {"tools", *SYSTEM_FIELDS}):
        before, now = recorded.head.get(name), asked.head.get(name)
        if before != now:
            found.append(f"{name} ({_short(before)}, now {_short(now)})")
    if [*_notes(recorded)] != [*_notes(asked)]:
        found.append("the list of tools and agents that can be had")
    said, saying = (comparable(each, "conversation")["messages"] for each in (recorded, asked))
    if said != saying and match_key(recorded, "loose") == match_key(asked, "loose"):
        found += _result_changes(recorded, asked)
    return found


def _tool_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    changed = [name for name in before if name in now and before[name] != now[name]]
    new = [name for name in now if name not in before]
    gone = [name for name in before if name not in now]
    kinds = (
        (changed, "the text of the tool {}", "the texts of the tools {}"),
        (new, "the tool {} is new", "the tools {} are new"),
        (gone, "the tool {} is gone", "the tools {} are gone"),
    )
    return [(one if len(names) == 1 else many).format(_list(names)) for names, one, many in kinds if names]


def _result_changes(recorded: Canonical, asked: Canonical) -> list[str]:
    before, now = ([*_results(each)] for each in (recorded, asked))
    count = sum(a != b for a, b in zip(before, now, strict=False)) + abs(len(before) - len(now))
    if not count:
        return ["a memory file or reminder"]
    return [f"{count} results of tools" if count > 1 else "a result of a tool"]


def _tools(request: Canonical) -> dict[str, Any]:
    """The definitions by name, in any of the formats."""
    listed = request.head.get("tools")
    found = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return {str((each.get("function") or each).get("name", "")): each for each in found}


def _system(request: Canonical) -> list[Any]:
    said = [message for message in request.messages if _is_system(message)]
    return said + [request.head[name] for name in SYSTEM_FIELDS if name in request.head]


def _is_system(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") in SYSTEM_ROLES


def _is_result(message: Any) -> bool:
    return isinstance(message, dict) and (
        message.get("role") == "tool" or message.get("type") in (*RESULT_KINDS, *THOUGHT_KINDS)
    )


def _blocks(message: Any) -> list[Any]:
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, list) else []


def _text(block: Any) -> str:
    text = block.get("text") if isinstance(block, dict) else None
    return text if isinstance(text, str) else ""


def _notes(request: Canonical) -> Iterator[str]:
    return (text for message in request.messages for text in map(_text, _blocks(message)) if is_note_about_tools(text))


def _results(request: Canonical) -> Iterator[Any]:
    for message in request.messages:
        if _is_result(message):
            yield message
        yield from (each for each in _blocks(message) if isinstance(each, dict) and each.get("type") in RESULT_KINDS)


def _conversation_blocks(blocks: Iterable[Any]) -> list[Any]:
    kept = (block for block in blocks if not is_note_about_tools(_text(block)))
    return [{**block, "text": MEMORY_INTRODUCTION.sub("", text)} if (text := _text(block)) else block for block in kept]


def _loose_blocks(blocks: Iterable[Any]) -> list[Any]:
    left_out = (*RESULT_KINDS, *THOUGHT_KINDS)
    return [
        block
        for block in _conversation_blocks(blocks)
        if not (isinstance(block, dict) and block.get("type") in left_out)
        and not _text(block).startswith(PROGRAM_TEXTS)
    ]


def _with_content(message: Any, keep: Any) -> Any:
    """The message with only the blocks to be comparable; None if none is left of them."""
    blocks = _blocks(message)
    if not blocks:
        return message
    left = keep(blocks)
    return {**message, "content": left} if left or message.get("tool_calls") else None


def _list(names: list[str]) -> str:
    shown = names[:MAX_NAMES]
    rest = len(names) - len(shown)
    if rest:
        return f"{', '.join(shown)} and {rest} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _short(value: Any) -> str:
    if value is None:
        return "not given"
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}..."

"""
Full compaction, purely: what a summary replaces, the request that asks for it, and the history made from it.

    environment, memory | ... older turns ...                | newest turns
    environment, memory | tools in use, the model's summary  | newest turns
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import assert_never

from handrail.conversation.blocks import Text, ToolReference, ToolResult, ToolUse
from handrail.conversation.messages import AssistantMessage, Attachment, Message, SystemNote, UserMessage
from handrail.loop.compaction.stubs import DEFAULT_POLICY, CompactionPolicy, estimate, stub_old_results
from handrail.loop.prompt import AGENTS, CONTEXT, NEAR_MEMORY, SKILL, SKILLS, STYLE
from handrail.records import record

SUMMARY = "summary"
TOOLS = "tools"
AUTHOR = "compaction"
RELOAD_ID = "compaction-tools"
KEPT_KINDS = frozenset({CONTEXT, NEAR_MEMORY, AGENTS})
LATEST_KINDS = frozenset({SKILLS, STYLE})
"""Of these the latest is kept, as of each loaded skill."""
OWN_KINDS = KEPT_KINDS | LATEST_KINDS | {SUMMARY, TOOLS}
MAX_SKILL, MAX_SKILLS = 20_000, 100_000
"""The most characters of one loaded skill, and of all of them, that stay after a summary."""

MAX_SUMMARY = 40_000
MAX_PROMPT = 4_000

REQUEST = """\
This conversation is getting too long. Write a summary of it that will take its place: you will go on working from the \
summary alone, without what stands above. Use these headings, and leave out those that do not apply:

## Task: what the user wants, in their words where wording matters, with every correction and limit they named
## State: what is done, what was checked and how, what is not done
## Files: each path that was read or changed, and what matters about it
## Findings: facts, decisions and their reasons, commands that work, errors and failed attempts
## Next: the step that comes next

Be exact with names, paths, numbers and commands. Do not call tools. Write nothing but the summary."""


@record
class HistorySplit:
    """A history in two parts: `older` is to be summarised, `newer` stays as it is."""

    older: tuple[Message, ...]
    newer: tuple[Message, ...]


def split_history(
    messages: Sequence[Message], window: int, policy: CompactionPolicy = DEFAULT_POLICY
) -> HistorySplit | None:
    """Where a summary ends and the newest turns begin; None when there is nothing to summarise."""
    starts = [*_starts(messages)]
    cut, size = len(messages), 0
    for start in reversed(starts):
        size += estimate(messages[start:cut])
        if cut < len(messages) and size > window * policy.tail:
            break
        cut = start
    older = tuple(messages[:cut])
    if not starts or not any(_is_new(message) for message in older):
        return None
    return HistorySplit(older, tuple(messages[cut:]))


def summary_request(
    older: Sequence[Message], window: int, instructions: str = "", policy: CompactionPolicy = DEFAULT_POLICY
) -> tuple[Message, ...]:
    """
    The history that asks the model for a summary. It begins like the requests before it, so the cache still helps.

    What would not fit into the window loses its largest results first, then its oldest turns.
    """
    wishes = f"\n\nThe user asks of this summary: {instructions.strip()}" if instructions.strip() else ""
    question = UserMessage((Text(REQUEST + wishes),))
    budget = int(window * (1 - policy.reserve)) - estimate([question])
    fitting = tuple(older)
    if estimate(fitting) > budget:
        shorter = stub_old_results(fitting, None, replace(policy, keep_results=0, worth=1))
        fitting = shorter.messages if shorter else fitting
    fitting = _newest_within(fitting, budget)
    if fitting and isinstance(fitting[0], AssistantMessage):
        fitting = (Attachment(CONTEXT, (Text("(The beginning of the conversation is left out.)"),)), *fitting)
    return (*fitting, question)


def _newest_within(messages: tuple[Message, ...], budget: int) -> tuple[Message, ...]:
    """As many of the newest turns as fit; one at least. Each message is looked at once: a history may be long."""
    sizes = [estimate([message]) for message in messages]
    left, begin = sum(sizes), 0
    for start in _starts(messages):
        if left <= budget:
            break
        left -= sum(sizes[begin:start])
        begin = start
    return messages[begin:]


def replace_with_summary(parts: HistorySplit, summary: str) -> tuple[Message, ...] | None:
    """The history with a summary in the place of older turns; None if it is empty or nothing gets shorter."""
    text = summary.strip()[:MAX_SUMMARY]
    if not text:
        return None
    context = (
        *dict.fromkeys(each for each in parts.older if isinstance(each, Attachment) and each.kind in KEPT_KINDS),
        *_latest(parts),
    )
    tools = tuple(dict.fromkeys(_references(parts.older)))
    note = SystemNote(f"{sum(map(_is_new, parts.older))} messages were replaced by a summary.")
    words = Attachment(SUMMARY, (Text(_summary_text(text, parts)),))
    after = (note, *context, *(_reload_tools(tools) if tools else ()), words, *parts.newer)
    return after if estimate(after) < estimate((*parts.older, *parts.newer)) else None


def _latest(parts: HistorySplit) -> tuple[Attachment, ...]:
    """What is kept once for each kind, as it was said last; the newest turns may have it already."""
    said = [each for each in parts.older if isinstance(each, Attachment)]
    found = {each.kind: each for each in said if each.kind in LATEST_KINDS or each.kind.startswith(SKILL)}
    for each in parts.newer:
        if isinstance(each, Attachment):
            found.pop(each.kind, None)
    room = MAX_SKILLS
    kept: dict[str, Attachment] = {}
    for each in reversed(said):  # those used last have the first claim
        if each.kind in kept or found.get(each.kind) != each:
            continue
        short = _shorten(each) if each.kind.startswith(SKILL) else each
        size = sum(len(block.text) for block in short.content if isinstance(block, Text))
        if not each.kind.startswith(SKILL):
            kept[each.kind] = each
        elif size <= room:
            room -= size
            kept[each.kind] = short
    return tuple(kept[kind] for kind in found if kind in kept)


def _shorten(skill: Attachment) -> Attachment:
    text = "\n".join(block.text for block in skill.content if isinstance(block, Text))
    if len(text) <= MAX_SKILL:
        return skill
    name = skill.kind.removeprefix(SKILL)
    return Attachment(skill.kind, (Text(f"{text[:MAX_SKILL]}\n[cut here: load the skill {name} again for the rest]"),))


def _starts(messages: Sequence[Message]) -> Iterator[int]:
    """Where a history may be cut: before an answer, or before the user's words. Never between a call and its result."""
    for at, message in enumerate(messages):
        match message:
            case AssistantMessage():
                yield at
            case UserMessage() if not any(isinstance(block, ToolResult) for block in message.content):
                yield at
            case _:
                pass


def _is_new(message: Message) -> bool:
    """Whether a message came from the user or the model, not from an earlier compaction or the program."""
    match message:
        case SystemNote():
            return False
        case Attachment():
            return message.kind not in OWN_KINDS and not message.kind.startswith(SKILL)
        case AssistantMessage():
            return message.model != AUTHOR
        case UserMessage():
            return not any(isinstance(each, ToolResult) and each.tool_use_id == RELOAD_ID for each in message.content)
        case _:
            assert_never(message)


def _summary_text(summary: str, parts: HistorySplit) -> str:
    prompts = [message for message in parts.newer if _prompt(message)] or [m for m in parts.older if _prompt(m)]
    text = f"<summary>\nThe conversation before this point was replaced by this summary of it:\n\n{summary}\n</summary>"
    if not prompts or prompts[-1] in parts.newer:
        return text
    words = _prompt(prompts[-1])
    return f"{text}\n\nThe user's newest request, in their own words:\n{words[:MAX_PROMPT]}"


def _prompt(message: Message) -> str:
    if not isinstance(message, UserMessage) or any(isinstance(block, ToolResult) for block in message.content):
        return ""
    return "\n".join(block.text for block in message.content if isinstance(block, Text))


def _references(messages: Iterable[Message]) -> Iterator[ToolReference]:
    for message in messages:
        if isinstance(message, UserMessage):
            for block in message.content:
                if isinstance(block, ToolResult):
                    yield from (part for part in block.content if isinstance(part, ToolReference))


def _reload_tools(tools: tuple[ToolReference, ...]) -> tuple[Message, ...]:
    """A search that finds the tools in use again: apis that load tools by reference need one in the history."""
    query = "select:" + ",".join(tool.name for tool in tools)
    return (
        Attachment(TOOLS, (Text("Load the tools again that were in use."),)),
        AssistantMessage((ToolUse(RELOAD_ID, "ToolSearch", {"query": query}),), model=AUTHOR),
        UserMessage((ToolResult(RELOAD_ID, tools),)),
        AssistantMessage((Text("They are loaded."),), model=AUTHOR),
    )

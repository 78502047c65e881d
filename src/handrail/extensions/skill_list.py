"""What the model is told of the skills: names and descriptions within a budget, and the text of one it loads."""

from collections.abc import Iterable, Sequence
from operator import attrgetter

from handrail.conversation.context import SKILL_LIST
from handrail.extensions.commands import CommandFile

BUDGET = 8_000
"""The most bytes of the list in a conversation."""
MAX_DESCRIPTION = 1_536
SHORTEST = 20


def skill_list(skills: Iterable[CommandFile], budget: int = BUDGET) -> str:
    """The list for the model; empty if there is none. Descriptions are cut where all of them would be too long."""
    offered = sorted((each for each in skills if each.is_for_model), key=attrgetter("name"))
    if not offered:
        return ""
    head = f"{SKILL_LIST}(load one with the Skill tool when it fits the task):\n"
    room = budget - len(head.encode())
    about = [_about(each) for each in offered]
    longest = max(map(len, about))
    while longest > SHORTEST and _size(offered, about, longest) > room:
        longest = longest * 3 // 4
    lines = [_line(each, text, longest) for each, text in zip(offered, about, strict=True)]
    if _size(offered, about, longest) > room:
        lines = [f"- {each.name}" for each in offered]
    return head + "\n".join(_fitting(lines, room))


def skill_text(skill: CommandFile, filled: str) -> str:
    """A skill's text as the model gets it."""
    return f"Base directory for this skill: {skill.folder}\n\n{filled}"


def _about(skill: CommandFile) -> str:
    text = f"{skill.description} - {skill.when}" if skill.when else skill.description
    return " ".join(text.split())[:MAX_DESCRIPTION]


def _line(skill: CommandFile, about: str, longest: int) -> str:
    return f"- {skill.name}: {about if len(about) <= longest else about[: longest - 3] + '...'}"


def _size(skills: Sequence[CommandFile], about: Sequence[str], longest: int) -> int:
    lines = (_line(each, text, longest) for each, text in zip(skills, about, strict=True))
    return sum(len(line.encode()) + 1 for line in lines)


def _fitting(lines: Sequence[str], room: int) -> list[str]:
    """The lines that fit, and how many do not."""
    note = "- and {} more, which are not listed: the user may name them"
    left = room - len(note.encode()) - 8
    kept: list[str] = []
    for line in lines:
        if len(line.encode()) + 1 > left and sum(len(each.encode()) + 1 for each in lines[len(kept) :]) > left:
            break
        left -= len(line.encode()) + 1
        kept.append(line)
    more = len(lines) - len(kept)
    return [*kept, note.format(more)] if more else kept

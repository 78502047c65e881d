"""What the model is told of the skills: names and descriptions within a budget, and the text of one it loads."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Protocol

from handrail.conversation.context import SKILL_LIST
from handrail.extensions.commands import CommandFile

BUDGET = 8_000
"""The most bytes of the list in a conversation."""
MAX_DESCRIPTION = 1_536
SHORTEST = 20


class ListedSkill(Protocol):
    """What the list says of a skill."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def when(self) -> str: ...

    @property
    def is_for_model(self) -> bool: ...


def skill_list(skills: Iterable[ListedSkill], budget: int = BUDGET) -> str:
    """The list for the model; empty if there is none. Descriptions are cut where all of them would be too long."""
    offered = sorted((each for each in skills if each.is_for_model), key=attrgetter("name"))
    if not offered:
        return ""
    head = f"{SKILL_LIST}(load one with the Skill tool when it fits the task):\n"
    names, about = [each.name for each in offered], [_about(each) for each in offered]
    return head + "\n".join(fitting_lines(names, about, budget - len(head.encode())))


def fitting_lines(names: Sequence[str], about: Sequence[str], room: int) -> list[str]:
    """A line for each name and what there is to say about it, cut so that all of them fit into so many bytes."""
    return _fitting(_lines(names, about, _longest(names, about, room)), room)


def skill_text(skill: CommandFile, filled: str) -> str:
    """A skill's text as the model gets it."""
    return f"Base directory for this skill: {skill.folder}\n\n{filled}"


def _about(skill: ListedSkill) -> str:
    return (f"{skill.description} - {skill.when}" if skill.when else skill.description)[:MAX_DESCRIPTION]


def _longest(names: Sequence[str], about: Sequence[str], room: int) -> int:
    """How long a description may be so that all of them fit; 0 = only names do."""
    taken = sum(len(each.encode()) + len("- : \n") for each in names)
    longest = MAX_DESCRIPTION
    # a character that is cut off may have any of four sizes, so that a text with long ones counts as all long
    plain = sorted(len(text) for text in about if text.isascii())
    long = sorted(len(text.encode()) for text in about if not text.isascii())
    while longest and taken + _cut_sum(plain, longest) + _cut_sum(long, 4 * longest) > room:
        longest = longest * 3 // 4 if longest > SHORTEST else 0
    return longest


def _cut_sum(sizes: Sequence[int], most: int) -> int:
    """The sum of sizes, which are in order, where none counts for more than `most`."""
    short = bisect_right(sizes, most)
    return sum(sizes[:short]) + most * (len(sizes) - short)


def _lines(names: Sequence[str], about: Sequence[str], longest: int) -> list[str]:
    if not longest:
        return [f"- {each}" for each in names]
    texts = (text if len(text) <= longest else f"{text[: longest - 3]}..." for text in about)
    return [f"- {each}: {text}" for each, text in zip(names, texts, strict=True)]


def _fitting(lines: list[str], room: int) -> list[str]:
    """The lines that fit, and how many do not."""
    if sum(len(line.encode()) + 1 for line in lines) <= room:
        return lines
    note = "- and {} more, which are not listed: the user may name them"
    left = room - len(note.encode()) - 8
    for number, line in enumerate(lines):
        left -= len(line.encode()) + 1
        if left < 0:
            return [*lines[:number], note.format(len(lines) - number)]
    return lines

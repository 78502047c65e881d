"""
What the program tells a model at the start of a conversation, in tags so that it can be found again.

Facts about the environment and the user's own memory differ between machines and days. Recordings are looked up
without them, so that they can be replayed elsewhere.
"""

import re

PERSONAL_SCOPES = ("policy", "user")
LOADABLE_TOOLS = "More tools can be loaded with "
AGENT_TYPES = "Kinds of sub-agents "
REMINDER = "<system-reminder>\n"
SKILL_LIST = "Skills that can be loaded "
"""How the notes begin that name tools, agents and skills outside the tools of a request."""

# compiled when first used: every run frames something, few hold a tag, fewer are recorded
_TAG = r"<(?=/?(?:environment|memory|memory-file)\b)"
_ENVIRONMENT = r"(?s)<environment>.*?</environment>\s*"
_PERSONAL = rf'(?s)<memory-file path="[^"]*" scope="(?:{"|".join(PERSONAL_SCOPES)})">.*?</memory-file>\s*'
_EMPTY_MEMORY = r"(?s)<memory>(?:(?!<memory-file).)*?</memory>\s*"


def environment_frame(text: str) -> str:
    """Facts about where and when the conversation takes place."""
    return f"<environment>\n{_inside(text)}\n</environment>"


def memory_file_frame(path: str, scope: str, text: str) -> str:
    """One memory file. Its text cannot close its tag."""
    name = path.replace('"', "&quot;").replace("<", "&lt;").replace("\n", " ")
    return f'<memory-file path="{name}" scope="{scope}">\n{_inside(text)}\n</memory-file>'


def memory_frame(introduction: str, files: list[str]) -> str:
    """All memory files in force."""
    return "\n".join(["<memory>", introduction, *files, "</memory>"])


def without_personal(text: str) -> str:
    """The text without what depends on the machine, the day and the user."""
    if "<environment>" in text:
        text = re.sub(_ENVIRONMENT, "", text)
    if "<memory>" in text:
        text = re.sub(_EMPTY_MEMORY, "", re.sub(_PERSONAL, "", text))
    return text


def is_note_about_tools(text: str) -> bool:
    """Whether a text only names tools, agents or skills that the model can have."""
    return text.removeprefix(REMINDER).startswith((LOADABLE_TOOLS, AGENT_TYPES, SKILL_LIST))


def _inside(text: str) -> str:
    text = text.strip("\n")
    return re.sub(_TAG, "&lt;", text) if "<" in text else text

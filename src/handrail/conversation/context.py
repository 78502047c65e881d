"""
What the program tells a model at the start of a conversation, framed so that it can be found again.

Facts of the environment and the user's own memory differ from one machine and day to the next. A recording is looked up
without them, so that it can be replayed elsewhere.
"""

import re

PERSONAL_SCOPES = ("policy", "user")

_TAG = re.compile(r"<(?=/?(?:environment|memory|memory-file)\b)")
_ENVIRONMENT = re.compile(r"<environment>.*?</environment>\s*", re.DOTALL)
_PERSONAL = re.compile(
    rf'<memory-file path="[^"]*" scope="(?:{"|".join(PERSONAL_SCOPES)})">.*?</memory-file>\s*', re.DOTALL
)
_EMPTY_MEMORY = re.compile(r"<memory>(?:(?!<memory-file).)*?</memory>\s*", re.DOTALL)


def environment_frame(text: str) -> str:
    """Facts about where and when the conversation takes place."""
    return f"<environment>\n{_inside(text)}\n</environment>"


def memory_file_frame(path: str, scope: str, text: str) -> str:
    """One memory file. It cannot end its own frame."""
    name = path.replace('"', "&quot;").replace("<", "&lt;").replace("\n", " ")
    return f'<memory-file path="{name}" scope="{scope}">\n{_inside(text)}\n</memory-file>'


def memory_frame(introduction: str, files: list[str]) -> str:
    """All memory files that hold."""
    return "\n".join(["<memory>", introduction, *files, "</memory>"])


def without_personal(text: str) -> str:
    """`text` without what depends on the machine, the day and the user."""
    if "<environment>" in text:
        text = _ENVIRONMENT.sub("", text)
    if "<memory>" in text:
        text = _EMPTY_MEMORY.sub("", _PERSONAL.sub("", text))
    return text


def _inside(text: str) -> str:
    return _TAG.sub("&lt;", text.strip("\n"))

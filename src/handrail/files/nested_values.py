"""
Parses a nested value of front matter, such as `hooks`: maps and lists by indentation, texts, and JSON in one line.

    hooks:
      PreToolUse:
        - matcher: Bash
          hooks:
            - type: command
              command: ./check.sh
"""

import json
import re
from typing import Any

from handrail.files.frontmatter import KEY, plain_value

MAX_DEPTH = 20
SCALARS = {"true": True, "false": False, "null": None, "~": None}


class _NotUnderstoodError(ValueError):
    """A block is not understood; the text says which line."""


def nested_value(text: str, name: str) -> tuple[Any, str]:
    """The value of a key in the front matter of a file, None if it is not there, and what is not understood of it."""
    try:
        return _value_of(text, name), ""
    except _NotUnderstoodError as error:
        return None, str(error)


def _value_of(text: str, name: str) -> Any:
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].strip() != "---":
        return None
    end = next((at for at, line in enumerate(lines[1:], 1) if line.strip() == "---"), len(lines))
    head = [line for line in lines[1:end] if line.strip() and not line.lstrip().startswith("#")]
    start = next((at for at, line in enumerate(head) if re.match(rf"{re.escape(name)}:(?:\s|$)", line)), None)
    if start is None:
        return None
    first = head[start].partition(":")[2].strip()
    inner: list[str] = []
    for line in head[start + 1 :]:
        if line[0] not in " \t" and not line.startswith("- "):
            break
        inner.append(line)
    if first and not inner:
        return _scalar(first)
    if first or any("\t" in line[: _indent(line)] for line in inner):
        raise _NotUnderstoodError(f"{head[start].strip()!r} mixes two ways to write a value, or is indented with tabs")
    return _block(inner, 0) if inner else None


def _block(lines: list[str], depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise _NotUnderstoodError(f"it is nested more than {MAX_DEPTH} levels deep")
    margin = _indent(lines[0])
    groups: list[list[str]] = []
    for line in lines:
        if _indent(line) == margin and not (groups and line.lstrip().startswith("- ") and _opens_list(groups[-1])):
            groups.append([line])
        elif _indent(line) < margin:
            raise _NotUnderstoodError(f"{line.strip()[:60]!r} is indented less than the lines before it")
        else:
            groups[-1].append(line)
    if all(group[0].lstrip().startswith("- ") for group in groups):
        return [_item(group, margin, depth) for group in groups]
    return dict(_pair(group, depth) for group in groups)


def _opens_list(group: list[str]) -> bool:
    """Whether a key may have its list at its own indentation, as YAML allows."""
    return group[0].rstrip().endswith(":") and not group[0].lstrip().startswith("- ")


def _item(group: list[str], margin: int, depth: int) -> Any:
    first = group[0].lstrip()[2:]
    inner = " " * (margin + 2 + len(first) - len(first.lstrip())) + first.lstrip()
    if len(group) == 1 and re.fullmatch(KEY, first.strip()) is None:
        return _scalar(first.strip())
    return _block([inner, *group[1:]], depth + 1)


def _pair(group: list[str], depth: int) -> tuple[str, Any]:
    found = re.fullmatch(KEY, group[0].strip())
    if found is None:
        raise _NotUnderstoodError(f"{group[0].strip()[:60]!r} is not a name and a value")
    first = found["value"].strip(" \t")
    if first[:1] in ("|", ">"):
        return found["name"], ("\n" if first[0] == "|" else " ").join(line.strip() for line in group[1:])
    if first and len(group) > 1:
        return found["name"], _scalar(" ".join([first, *(line.strip() for line in group[1:])]))
    return found["name"], _scalar(first) if first else _block(group[1:], depth + 1) if len(group) > 1 else None


def _scalar(text: str) -> Any:
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _NotUnderstoodError(f"{text[:60]!r} is not JSON, or is nested too deep") from error
    if text.lower() in SCALARS:
        return SCALARS[text.lower()]
    return int(text) if re.fullmatch(r"-?[0-9]{1,15}", text) else plain_value(text)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())

"""`handrail skills`: the skills that hold in this folder, one in full, a new one, and what is wrong with them."""

import argparse
import os
from pathlib import Path
from typing import Any

from handrail.cli.permission_flags import warn
from handrail.cli.terminal import count_of
from handrail.config.flags import NO_FLAGS_GIVEN
from handrail.conversation.plain import plain, plain_json
from handrail.errors import HandrailError
from handrail.extensions.commands import CommandFile
from handrail.extensions.definition_files import UnreadFile
from handrail.extensions.skills import SPECIFIED, read_skill
from handrail.session.command_turn import is_trusted
from handrail.session.settings.session_settings import SessionSettings, open_settings
from handrail.session.skills.notes import SessionSkills
from handrail.session.state_folder import state_folder
from handrail.tools.wording import did_you_mean

NEW = """---
name: {name}
description: What it does, and when to use it. This is all that the model sees before it loads the skill.
---
# {name}

1. Say here what to do, step by step.
2. Name files of this folder where they help; they are read only when they are needed.
"""


def run(chosen: argparse.Namespace) -> int:
    """Do what was asked for; 1 if `check` found a problem."""
    settings = open_settings(Path.cwd(), os.environ, state_folder(os.environ), NO_FLAGS_GIVEN, warn)
    skills = SessionSkills(Path.cwd(), settings)
    found = skills.skills
    if chosen.what == "new":
        return _new(chosen.name, user=chosen.user)
    if chosen.what == "show":
        return _show(found.get(chosen.name), chosen.name, [*found], settings, as_json=chosen.json)
    if chosen.what == "check":
        return _check(skills.problems, len(found), as_json=chosen.json)
    rows = [_row(each, settings) for each in found.values()]
    if chosen.json:
        print(plain_json(rows, indent=2))
    for row in () if chosen.json else rows:
        print(plain(f"{row['name']} ({row['source']}{', not trusted' if not row['trusted'] else ''})"))
        print(plain(f"    {row['description'][:200]}"))
    if not rows and not chosen.json:
        print("There are no skills here. `handrail skills new NAME` writes one.")
    return 0


def _row(skill: CommandFile, settings: SessionSettings) -> dict[str, Any]:
    return {
        "name": skill.name,
        "description": skill.description,
        "source": skill.source,
        "file": skill.file,
        "for_model": skill.is_for_model,
        "for_people": skill.is_listed,
        "wants": skill.widens,
        "trusted": is_trusted(skill, settings),
    }


def _show(skill: CommandFile | None, name: str, names: list[str], settings: SessionSettings, *, as_json: bool) -> int:
    if skill is None:
        raise HandrailError(f"there is no skill {name!r}.{did_you_mean(name, names)} See `handrail skills list`.")
    whole = read_skill(skill)
    if isinstance(whole, UnreadFile):
        raise HandrailError(str(whole))
    if as_json:
        print(plain_json({**_row(whole, settings), "text": whole.body}, indent=2))
        return 0
    row = _row(whole, settings)
    print(plain(f"{whole.name} ({whole.shown})\n{whole.description}"))
    for wish, value in whole.widens.items():
        note = "" if row["trusted"] else " - not before this folder is trusted: handrail trust"
        print(plain(f"{wish}: {plain_json(value)}{note}"))
    print(plain(f"\n{whole.body}"))
    return 0


def _new(name: str, *, user: bool) -> int:
    if not SPECIFIED.fullmatch(name):
        raise HandrailError(f"{name!r} cannot be the name of a skill. Use lower-case letters, digits and hyphens.")
    own = Path(os.environ.get("HANDRAIL_CONFIG_DIR") or Path.home() / ".handrail").expanduser()
    file = (own if user else Path(".handrail")) / "skills" / name / "SKILL.md"
    if file.exists():
        raise HandrailError(f"{file} is there already. Choose another name, or edit it.")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(NEW.format(name=name), "utf-8")
    print(f"{file} was written. Describe in it what to do; /{name} starts it.")
    return 0


def _check(problems: tuple[str, ...], count: int, *, as_json: bool) -> int:
    if as_json:
        print(plain_json({"skills": count, "problems": problems}, indent=2))
    else:
        for problem in problems:
            print(plain(problem))
        print(f"{count_of(count, 'skill')}, {count_of(len(problems), 'problem')}")
    return 1 if problems else 0

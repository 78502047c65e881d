"""A line of the audit log as plain data."""

from collections.abc import Iterable, Mapping
from typing import Any

from handrail.tools.permission import Strength
from handrail.view.model import DecisionData, OpinionData

SUBJECT_KEYS = ("command", "file_path", "notebook_path", "pattern", "path", "url", "query", "description", "prompt")
MAX_SUBJECT = 200


def decision_data(line: Mapping[str, Any]) -> DecisionData:
    """What a line of the audit log says; KeyError, TypeError or ValueError if it is none."""
    opinions = [
        OpinionData(
            layer=str(each["layer"]),
            says=str(each["says"]),
            strength=str(each["strength"]),
            reason=str(each["reason"]),
            rule=str(each.get("rule") or ""),
        )
        for each in line["opinions"]
    ]
    asked, verdict = bool(line.get("asked")), str(line["decision"])
    judging, waiting = line.get("micros") or (0, 0)
    return DecisionData(
        at=float(line["at"]),
        verdict=verdict,
        by=str(line["by"]),
        asked=asked,
        reason=str(line["reason"]),
        rule=deciding_rule(opinions, "ask" if asked else verdict),
        mode=str(line.get("mode") or ""),
        judging=judging / 1e6,
        waiting=waiting / 1e6,
        opinions=opinions,
        remedy=update_texts(line.get("remedy") or ()),
        learned=update_texts(line.get("updates") or ()),
    )


def deciding_rule(opinions: Iterable[OpinionData], verdict: str) -> str:
    """The rule of the strongest opinion with this verdict; empty if it names none."""
    same = [each for each in opinions if each["says"] == verdict]
    strongest = max(same, key=lambda each: Strength[each["strength"].upper()], default=None)
    return strongest["rule"] if strongest else ""


def update_texts(updates: Iterable[Mapping[str, Any]]) -> list[str]:
    """Permission updates in the words of settings files."""
    texts: list[str] = []
    for update in updates:
        for rule in update.get("rules") or ():
            content = rule.get("ruleContent")
            texts.append(str(rule["toolName"]) if content is None else f"{rule['toolName']}({content})")
        if update.get("mode"):
            texts.append(f"mode {update['mode']}")
        texts += [f"folder {folder}" for folder in update.get("directories") or ()]
    return list(dict.fromkeys(texts))


def subject_of(values: Mapping[str, Any]) -> str:
    """What a call is about, in a line: the value that says most."""
    for value in (*map(values.get, SUBJECT_KEYS), *values.values()):
        if value and isinstance(value, str):
            return " ".join(value[: 2 * MAX_SUBJECT].split())[:MAX_SUBJECT]
    return ""

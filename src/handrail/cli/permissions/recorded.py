"""Calls that were made: as audit logs have them, and as sessions do."""

import json
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from handrail.cli.permissions.calls import facts_of_call, installed
from handrail.conversation.blocks import ToolUse
from handrail.dispatch.approval.audit import FORMAT
from handrail.errors import HandrailError
from handrail.permissions.case import Facts
from handrail.records import record
from handrail.tools.access import Access
from handrail.tools.permission import NO_OPINION, Check, Opinion, Strength, Verdict
from handrail.tools.tool import McpInfo, matches
from handrail.transcripts import log

REFUSED = " was refused: "


@record
class Surroundings:
    """Where a call was made."""

    cwd: str
    home: str
    folders: tuple[str, ...]
    kept: tuple[str, ...]
    mode: str


@record
class Recorded:
    """A call as the log has it: `before` is what the policy said then, `agreed` whether a person said yes."""

    use: ToolUse
    facts: Facts
    before: str
    agreed: bool
    refused: bool
    surroundings: Surroundings
    cut: bool


def read(file: str) -> list[Recorded]:
    """
    The calls of an audit log.

    Raises:
        HandrailError: it is none, or of a newer version; the message names the line.
    """
    try:
        lines = Path(file).read_text("utf-8").split("\n")
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise HandrailError(f"{file} cannot be read: {reason}.") from error
    found = []
    for number, text in enumerate(lines, 1):
        if not text:
            continue
        try:
            found.append(recorded(json.loads(text)))
        except (ValueError, KeyError, TypeError) as error:
            raise HandrailError(f"{file}:{number}: this is no line of an audit log ({error!r}).") from error
    return found


def recorded(line: Mapping[str, Any]) -> Recorded:
    if line["v"] > FORMAT:
        raise HandrailError(f"the log has format {line['v']}, and this handrail reads up to {FORMAT}. Update it.")
    asked, decision = line.get("asked", False), line["decision"]
    text = json.dumps(line["input"])
    return Recorded(
        use=ToolUse(line["call"], line["tool"], dict(line["input"])),
        facts=facts_from(line),
        before="ask" if asked else decision,
        agreed=asked and decision == "allow" and line["by"] not in ("hooks", "classifier", "rules"),
        refused=asked and decision == "deny" and line["by"] in ("person", "callback", "coordinator"),
        surroundings=Surroundings(
            line["cwd"], line["home"], tuple(line["working_dirs"]), tuple(line.get("kept", ())), line["mode"]
        ),
        cut="[redacted:" in text or " more characters]" in text,
    )


def facts_from(line: Mapping[str, Any]) -> Facts:
    facts = line.get("facts", {})
    use = ToolUse(line["call"], line["tool"], dict(line["input"]))
    said = facts_of_call(use, line["cwd"])
    access = Access.from_json(facts["declares"]) if "declares" in facts else said.access
    matcher = said.matches if use.name in installed() else partial(_covers, facts.get("subject", ""))
    hook = next((each for each in line["opinions"] if each["layer"] == "hooks" and each["strength"] != "person"), None)
    verdict, reason = facts.get("check", (None, ""))
    return Facts(
        mcp=McpInfo(*facts["mcp"]) if "mcp" in facts else None,
        access=access,
        matches=matcher,
        subject=facts.get("subject", ""),
        read_only=facts.get("read_only", said.read_only),
        destructive=facts.get("destructive", False),
        needs_person=facts.get("needs_person", False),
        hook=hook
        and Opinion(
            Strength[hook["strength"].upper()], Verdict(hook["says"]), "hooks", hook["reason"], hook.get("rule", "")
        ),
        doubt=facts.get("doubt", ""),
        check=Check(Verdict(verdict), reason) if verdict else NO_OPINION,
        unmet=tuple(facts.get("unmet", ())),
    )


def _covers(subject: str, content: str) -> bool:
    return bool(subject) and matches(content, subject)


def of_session(path: Path, audits: Path) -> list[Recorded]:
    """
    The calls of a session. Where an audit log tells more of one (what was asked, by whom it was answered), that counts.

    Raises:
        HandrailError: a log cannot be read.
    """
    known = {line["call"]: line for line in _audited(path.stem, audits)}
    lines = [line for line in log.read(path) if not isinstance(line, log.BrokenLine)]
    results = {block.get("tool_use_id"): block for block in _blocks(lines, "tool_result")}
    cwd = next((line["cwd"] for line in lines if isinstance(line.get("cwd"), str)), "") or os.path.realpath(".")
    there = Surroundings(cwd, os.path.realpath(Path.home()), (cwd,), (), "default")
    found: dict[str, Recorded] = {}
    for block in _blocks(lines, "tool_use"):
        call, name, given = str(block.get("id")), str(block.get("name")), block.get("input")
        if call in known:
            found[call] = recorded(known[call])
        elif isinstance(given, dict):
            result = results.get(call, {})
            refused = bool(result.get("is_error")) and REFUSED in json.dumps(result.get("content"))
            before = "deny" if refused else "allow"
            use = ToolUse(call, name, given)
            cut = "[redacted:" in json.dumps(given)
            found[call] = Recorded(use, facts_of_call(use, cwd), before, False, False, there, cut=cut)
    return list(found.values())


def _audited(session: str, folder: Path) -> Iterator[Mapping[str, Any]]:
    for file in sorted(folder.glob("*.jsonl")) if folder.is_dir() else ():
        for text in file.read_text("utf-8", "replace").split("\n"):
            try:
                line = json.loads(text)
            except ValueError:
                continue  # a line that was being written when its process died
            if line.get("session") == session:
                yield line


def _blocks(lines: list[log.Record], kind: str) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        message = line.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == kind:
                yield block

"""Recorded calls, read from audit logs and sessions."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from handrail.builtin.bash.permission import SPARED
from handrail.cli.permissions.calls import AbsentTool, KnownTools
from handrail.conversation.blocks import ToolUse
from handrail.dispatch.approval.audit import FORMAT
from handrail.errors import HandrailError
from handrail.permissions.facts import Evidence
from handrail.records import record
from handrail.tools.access import Access
from handrail.tools.context import RunContext
from handrail.tools.permission import NO_OPINION, Check, Opinion, Strength, Verdict
from handrail.tools.request import CallRequest
from handrail.transcripts import log

REFUSED = " was refused: "


@record
class Surroundings:
    """The folders and the mode of a recorded call."""

    cwd: str
    home: str
    folders: tuple[str, ...]
    kept: tuple[str, ...]
    mode: str


@record
class Recorded:
    """A recorded call: `before` is what the policy said then, `agreed` whether a person said yes."""

    request: CallRequest
    evidence: Evidence | None
    """What hooks and checks had said; None if that was not recorded, and the checks are asked now."""
    before: str
    agreed: bool
    refused: bool
    surroundings: Surroundings
    cut: bool


def read(file: str, tools: KnownTools) -> list[Recorded]:
    """The calls of an audit log; a HandrailError names the line that is not of one, or of a newer version."""
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
            found.append(parse_line(json.loads(text), tools))
        except (ValueError, KeyError, TypeError) as error:
            raise HandrailError(f"{file}:{number}: this is no line of an audit log ({error!r}).") from error
    return found


def parse_line(line: Mapping[str, Any], tools: KnownTools) -> Recorded:
    if line["v"] > FORMAT:
        raise HandrailError(f"the log has format {line['v']}, and this handrail reads up to {FORMAT}. Update it.")
    asked, decision = line.get("asked", False), line["decision"]
    text = json.dumps(line["input"])
    return Recorded(
        request=request_from(line, tools),
        evidence=evidence_from(line),
        before="ask" if asked else decision,
        agreed=asked and decision == "allow" and line["by"] not in ("hooks", "classifier", "rules"),
        refused=asked and decision == "deny" and line["by"] in ("person", "callback", "coordinator"),
        surroundings=Surroundings(
            line["cwd"], line["home"], tuple(line["working_dirs"]), tuple(line.get("kept", ())), line["mode"]
        ),
        cut="[redacted:" in text or " more characters]" in text,
    )


def request_from(line: Mapping[str, Any], tools: KnownTools) -> CallRequest:
    """The call as it was: what the log recorded of it goes before what the tool would say today."""
    facts = line.get("facts", {})
    use = ToolUse(line["call"], line["tool"], dict(line["input"]))
    tool = (tools.find(use.name) if use.name in tools.names else None) or AbsentTool(use.name, facts)
    request = CallRequest.hypothetical(use, tool, RunContext(Path(line["cwd"])))
    if "declares" in facts:
        request.access = Access.from_json(facts["declares"])
    request.read_only = facts.get("read_only", request.read_only)
    return request


def evidence_from(line: Mapping[str, Any]) -> Evidence:
    """What hooks and checks had said; where a command would run is asked again."""
    facts = line.get("facts", {})
    hook = next((each for each in line["opinions"] if each["layer"] == "hooks" and each["strength"] != "person"), None)
    verdict, reason = facts.get("check", (None, ""))
    return Evidence(
        hook=hook
        and Opinion(
            Strength[hook["strength"].upper()], Verdict(hook["says"]), "hooks", hook["reason"], hook.get("rule", "")
        ),
        doubt=facts.get("doubt", ""),
        check=Check(Verdict(verdict), reason) if verdict and reason != SPARED else NO_OPINION,
        unmet=tuple(facts.get("unmet", ())),
    )


def of_session(path: Path, audits: Path, tools: KnownTools) -> list[Recorded]:
    """
    The calls of a session, completed from audit logs, which know what was asked and who answered.

    A call of a tool that does not exist was turned away before any policy was asked, so it is left out.
    """
    known = {line["call"]: line for line in _audit_lines(path.stem, audits)}
    lines = [line for line in log.read(path) if not isinstance(line, log.BrokenLine)]
    results = {block.get("tool_use_id"): block for block in _blocks(lines, "tool_result")}
    cwd = next((line["cwd"] for line in lines if isinstance(line.get("cwd"), str)), "") or os.path.realpath(".")
    there = Surroundings(cwd, os.path.realpath(Path.home()), (cwd,), (), "default")
    found: dict[str, Recorded] = {}
    for block in _blocks(lines, "tool_use"):
        call, name, given = str(block.get("id")), str(block.get("name")), block.get("input")
        if call in known:
            found[call] = parse_line(known[call], tools)
        elif isinstance(given, dict) and (tool := tools.find(name)) is not None:
            result = results.get(call, {})
            refused = bool(result.get("is_error")) and REFUSED in json.dumps(result.get("content"))
            before = "deny" if refused else "allow"
            request = CallRequest.hypothetical(ToolUse(call, name, given), tool, RunContext(Path(cwd)))
            cut = "[redacted:" in json.dumps(given)
            found[call] = Recorded(request, None, before, False, False, there, cut=cut)
    return list(found.values())


def _audit_lines(session: str, folder: Path) -> Iterator[Mapping[str, Any]]:
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

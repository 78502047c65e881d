"""
One run as a file of its own: the page with the data inside, which loads nothing and sends nothing.

The modules of the page are put one behind the other. Scripts and styles are named by their digests in the policy of the
page, so that nothing in the data can run.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from html import escape
from typing import Any

from handrail.conversation.json_bytes import json_bytes
from handrail.conversation.redact import Redactor
from handrail.view.changes import FileDiff
from handrail.view.model import RunRecord
from handrail.web.assets import assets

MODULES = ("dom", "source", "list", "call", "changes", "ask", "frame", "timeline", "run", "app")
"""In the order of their imports."""
IMPORT = re.compile(r"^import .*$", re.MULTILINE)
EXPORT = re.compile(r"^export ", re.MULTILINE)
LEFT_OUT = "Contents were left out: what was said, called and answered is not in this file."


def export_page(run: RunRecord, diffs: list[FileDiff], redactor: Redactor, *, contents: bool = True) -> bytes:
    """The page of a run. Secrets are removed once more; without `contents`, texts, inputs, results and diffs are."""
    shown: dict[str, Any] = {**run.as_json(), "diffs": diffs}
    shown = redactor.value(shown) if contents else without_contents(shown)
    data = json_bytes(shown).replace(b"<", b"\\u003c")
    files = {name: content.decode() for name, (content, _) in assets().items()}
    script = "\n".join(EXPORT.sub("", IMPORT.sub("", files[f"{name}.js"])) for name in MODULES)
    style = files["style.css"]
    policy = f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)}; base-uri 'none'"
    title = escape(str(shown["title"] or run.id))
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        '<div id="app"></div>\n<script type="application/json" id="run-data">'
    )
    end = f'</script>\n<script type="module">{script}</script>\n</body>\n</html>\n'
    return head.encode("utf-8", "replace") + data + end.encode()


def digest(text: str) -> str:
    """The name of a script or style in a content policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def without_contents(run: Mapping[str, Any]) -> dict[str, Any]:
    """A run without what it was about: tools, times, costs, verdicts and layers stay."""
    silent_opinion = {"reason": "", "rule": ""}

    def silent_decision(decision: Mapping[str, Any] | None) -> dict[str, Any] | None:
        if decision is None:
            return None
        opinions = [{**each, **silent_opinion} for each in decision["opinions"]]
        return {**decision, **silent_opinion, "opinions": opinions, "remedy": [], "learned": []}

    silent_call = {"subject": "", "input": {}, "result": "", "size": 0}
    return {
        **run,
        "title": "",
        "cwd": "",
        "problem": "",
        "problems": [],
        "diffs": [],
        "changes": [],
        "agents": [{**each, "description": ""} for each in run["agents"]],
        "calls": [{**each, **silent_call, "decision": silent_decision(each["decision"])} for each in run["calls"]],
        "entries": [
            each if each["kind"] == "ended" else {**each, "text": "", "size": 0}
            for each in run["entries"]
            if each["kind"] in ("prompt", "text", "call", "ended", "compacted", "discarded")
        ],
        "left_out": LEFT_OUT,
    }

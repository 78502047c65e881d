"""The cards of a call, drawn by its tool, or plain ones where the tool fails."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from handrail.conversation.blocks import Json
from handrail.dispatch.call_state import Call
from handrail.tools.cards import Card
from handrail.tools.context import Progress
from handrail.tools.flags import ask_tool
from handrail.tools.outcome import Outcome, Status

STORED = re.compile(r"<persisted-output>\n[^\n]*? The whole text is in ([^\n]+?)\. ")
"""The beginning of a result that was too large, as `ResultStore` writes it."""


class ToolCards:
    """Draws one call by the card methods of its tool."""

    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call = call

    def use(self) -> Card:
        call, tool = self._call, self._call.tool
        if tool is None:
            return self._plain()
        card = ask_tool(tool.name, "use_card", lambda: tool.use_card(call.use.input), self._plain())
        tag = "" if call.problem else ask_tool(tool.name, "tag", lambda: tool.tag(call.args), "")
        return replace(card, tag=tag) if tag else card

    def progress(self, so_far: Sequence[Progress]) -> Card:
        tool, plain = self._call.tool, self._plain()
        return ask_tool(tool.name, "progress_card", lambda: tool.progress_card(so_far), plain) if tool else plain

    def end(self, outcome: Outcome, progress: Sequence[Progress]) -> Card:
        card, path = self._end(outcome, progress), stored_file(outcome)
        if not path:
            return card
        parts = (card.body, f"(all of it is in {path})")  # the end of a program's output is shown, the start of others
        return replace(card, body="\n".join(parts if card.body_kind == "code" else reversed(parts)))

    def _end(self, outcome: Outcome, progress: Sequence[Progress]) -> Card:
        tool, use, text = self._call.tool, self._call.use, without_frame(outcome.result.text)
        plain = replace(self._plain(), detail=outcome.status.value, body=text)
        if tool is None:
            return plain
        if outcome.status is Status.DENIED:
            reason = outcome.decision.reason if outcome.decision else text
            return ask_tool(tool.name, "rejected_card", lambda: tool.rejected_card(use.input, reason), plain)
        output = outcome.output
        if output is not None and (outcome.status is Status.OK or output.card is not None):
            return ask_tool(tool.name, "result_card", lambda: tool.result_card(output, progress), plain)
        if outcome.status is not Status.ERROR:
            return plain
        return ask_tool(tool.name, "error_card", lambda: tool.error_card(text), plain)

    def group(self, inputs: Sequence[Json]) -> Card | None:
        tool = self._call.tool
        return ask_tool(tool.name, "group_card", lambda: tool.group_card(inputs), None) if tool else None

    def _plain(self) -> Card:
        return Card(self._call.use.name)


def stored_file(outcome: Outcome) -> str:
    """The file that holds a result which was too large; empty if there is none."""
    data = outcome.output.data if outcome.output else None
    path = data.get("persistedOutputPath", "") if isinstance(data, Mapping) else ""
    found = STORED.match(outcome.result.text)
    return str(path or (found[1] if found else ""))


def without_frame(text: str) -> str:
    """A result for people: what marks an error for the model is left out."""
    return text.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")

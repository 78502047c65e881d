"""Changes one cell of a notebook and keeps every other character."""

import json
import secrets
from operator import itemgetter
from typing import Any, Literal, TypeAlias

from handrail.builtin.notebook_edit.spans import JsonSpan, elements, members
from handrail.builtin.read.notebook import cell_id
from handrail.errors import ToolError
from handrail.records import record
from handrail.tools.wording import did_you_mean, several

CellType: TypeAlias = Literal["code", "markdown"]
Change: TypeAlias = tuple[int, int, str]
ORDER = ("cell_type", "execution_count", "id", "metadata", "outputs", "source")


@record
class EditedNotebook:
    """The new text, and the id and type of the changed cell."""

    text: str
    cell: str
    cell_type: str


class NotebookText:
    """The text of a valid notebook with the positions of its cells."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        root = members(text, len(text) - len(text.lstrip(" \t\r\n")))
        self._list = root["cells"]
        self.cells = elements(text, self._list.start)
        minor = root["nbformat_minor"].value if "nbformat_minor" in root else 0
        major = root["nbformat"].value if "nbformat" in root else 4
        self._with_ids = isinstance(minor, int) and isinstance(major, int) and (major, minor) >= (4, 5)
        self._lead = self._before_cells()
        self._gap = self._between_cells()
        self._unit = self._lead.rpartition("\n")[2][: max(len(self._lead.rpartition("\n")[2]) // 2, 1)]
        self._ascii = text.isascii() and "\\u" in text

    def find(self, wanted: str) -> int:
        """
        The position of a cell, by its id or by `cell-N`.

        Raises:
            ToolError: there is none.
        """
        ids = [cell_id(cell.value, index) for index, cell in enumerate(self.cells)]
        if wanted in ids:
            return ids.index(wanted)
        number = wanted.removeprefix("cell-")
        if wanted != number and number.isascii() and number.isdigit() and int(number) < len(ids):
            return int(number)
        raise ToolError(
            f"{self.name!r} has no cell {wanted!r}; it has {several(len(ids), 'cell')}.{did_you_mean(wanted, ids)} "
            "Read it to see the ids."
        )

    def replace(self, index: int, source: str, cell_type: CellType | None) -> EditedNotebook:
        """Replace the source of a cell and clear its outputs."""
        cell = self.cells[index]
        kind = str(cell.value.get("cell_type"))
        name = cell_id(cell.value, index)
        if cell_type not in (None, kind):
            changed = self._as_other_type(cell.value, source, str(cell_type))
            return EditedNotebook(
                self._splice([(cell.start, cell.end, self._whole_cell(changed))]), name, str(cell_type)
            )
        found = members(self.text, cell.start)
        changes = [self._member(cell, found, "source", _like(found, source))]
        if kind == "code":
            changes += [self._member(cell, found, "outputs", []), self._member(cell, found, "execution_count", None)]
        return EditedNotebook(self._splice([change for change in changes if change]), name, kind)

    def insert(self, after: int | None, source: str, cell_type: CellType) -> EditedNotebook:
        """Insert a cell after another one, or at the beginning."""
        cell = self._new(source, cell_type)
        text = self._whole_cell(cell)
        place = 0 if after is None else after + 1
        name = cell_id(cell, place)
        if not self.cells:
            tail = self._lead[: len(self._lead) - len(self._unit)] if "\n" in self._lead else ""
            change = (self._list.start, self._list.end, f"[{self._lead}{text}{tail}]")
        elif after is None:
            at = self.cells[0].start
            change = (at, at, f"{text},{self._gap}")
        else:
            at = self.cells[after].end
            change = (at, at, f",{self._gap}{text}")
        return EditedNotebook(self._splice([change]), name, cell_type)

    def delete(self, index: int) -> EditedNotebook:
        """Delete a cell."""
        cell = self.cells[index]
        if len(self.cells) == 1:
            change = (self._list.start, self._list.end, "[]")
        elif index:
            change = (self.cells[index - 1].end, cell.end, "")
        else:
            change = (cell.start, self.cells[1].start, "")
        return EditedNotebook(self._splice([change]), cell_id(cell.value, index), str(cell.value.get("cell_type")))

    def _new(self, source: str, cell_type: str) -> dict[str, Any]:
        cell: dict[str, Any] = {"cell_type": cell_type, "metadata": {}, "source": source.splitlines(keepends=True)}
        if cell_type == "code":
            cell |= {"execution_count": None, "outputs": []}
        if self._with_ids:
            taken = {each.value.get("id") for each in self.cells}
            cell["id"] = next(name for name in iter(lambda: secrets.token_hex(4), "") if name not in taken)
        return {key: cell[key] for key in ORDER if key in cell}

    def _as_other_type(self, old: dict[str, Any], source: str, cell_type: str) -> dict[str, Any]:
        new = self._new(source, cell_type) | {"metadata": old.get("metadata", {})}
        if "id" in old:
            new["id"] = old["id"]
        return new

    def _member(self, cell: JsonSpan, found: dict[str, JsonSpan], key: str, value: Any) -> Change | None:
        """The change that sets a member of a cell; None if it has that value already."""
        if key in found:
            old = found[key]
            if old.value == value:
                return None
            return old.start, old.end, self._format_value(value, cell.start, old.key_start)
        if not found:
            return cell.start, cell.end, json.dumps({key: value})
        last = max(found.values(), key=lambda member: member.end)
        lead = self._between(cell.start + 1, min(member.key_start for member in found.values()))
        colon = ": " if '": ' in self.text else ":"
        return last.end, last.end, f',{lead}"{key}"{colon}{self._format_value(value, cell.start, last.key_start)}'

    def _whole_cell(self, cell: dict[str, Any]) -> str:
        if "\n" not in self._lead:
            return self._compact(cell)
        return self._pretty(cell, self._lead.rpartition("\n")[2])

    def _format_value(self, value: Any, container: int, at: int) -> str:
        """Format a value like the text around it."""
        lead = self._between(container + 1, at)
        return self._pretty(value, lead.rpartition("\n")[2]) if "\n" in lead else self._compact(value)

    def _between(self, start: int, end: int) -> str:
        """The whitespace right before a position."""
        part = self.text[start:end]
        return part[len(part.rstrip(" \t\r\n")) :]

    def _pretty(self, value: Any, indent: str) -> str:
        end = "\r\n" if "\r\n" in self.text else "\n"
        text = json.dumps(value, indent=self._unit or " ", ensure_ascii=self._ascii)
        return text.replace("\n", end + indent)

    def _compact(self, value: Any) -> str:
        separators = (", ", ": ") if '": ' in self.text else (",", ":")
        return json.dumps(value, separators=separators, ensure_ascii=self._ascii)

    def _before_cells(self) -> str:
        """The whitespace before each cell; without cells, two indents of the file."""
        if self.cells:
            return self.text[self._list.start + 1 : self.cells[0].start]
        step = self._between(0, self._list.key_start)
        return step + step.rpartition("\n")[2] if "\n" in step else ""

    def _between_cells(self) -> str:
        """The whitespace between the comma after a cell and the next cell."""
        if len(self.cells) > 1:
            return self._between(self.cells[0].end, self.cells[1].start)
        return self._lead if "\n" in self._lead else " " if '": ' in self.text else ""

    def _splice(self, changes: list[Change]) -> str:
        parts, at = [], 0
        for start, end, new in sorted(changes, key=itemgetter(0, 1)):
            parts += [self.text[at:start], new]
            at = end
        return "".join([*parts, self.text[at:]])


def _like(found: dict[str, JsonSpan], source: str) -> str | list[str]:
    """The source in the form that the cell uses: one string or a list of lines."""
    old = found["source"].value if "source" in found else []
    return source if isinstance(old, str) else source.splitlines(keepends=True)

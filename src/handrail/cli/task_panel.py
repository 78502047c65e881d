"""Ctrl+T: the tasks and agents at work, with what they write as it comes, and a key that stops one."""

import asyncio
from collections.abc import Sequence

from handrail.cli.task_output import read_end
from handrail.errors import HandrailError
from handrail.records import record
from handrail.session.background import unheard_tasks
from handrail.tui.interactive.chat import Chat, ChatCommand
from handrail.tui.interactive.dialog import DialogChoice, DialogQuestion, DialogReply
from handrail.tui.interactive.terminal import Terminal

TICK = 0.5
"""Seconds between two looks at what they have written."""
MAX_SHOWN, MAX_TEXT = 4_000, 100_000
STOP = "stop"
HINT = "arrows choose, x stops it, Enter shows all of its output, Esc leaves"


@record
class WorkRow:
    """A task or an agent, and the file that it writes to, if there is one."""

    id: str
    label: str
    file: str = ""


def work_rows(chat: Chat, terminal: Terminal) -> tuple[WorkRow, ...]:
    """The tasks that run or whose end the model does not know yet, and the agents at work."""
    tasks = unheard_tasks(chat.session.services)
    known = {task.id for task in tasks}
    rows = [
        WorkRow(task.id, f"{task.description} ({task.subtype or task.id}, {task.status})", task.output)
        for task in tasks
    ]
    agents = [node for node in terminal.view.agents.all() if node.id not in known]
    return (*rows, *(WorkRow(node.id, f"{node.task} ({node.kind}, running)") for node in agents))


class TaskPanel:
    """Shows what is at work until it is left."""

    def __init__(self, chat: Chat, terminal: Terminal) -> None:
        self._chat = chat
        self._terminal = terminal
        self._selected = ""

    async def show(self) -> None:
        """Show it; stop what the person wants to have stopped."""
        while rows := work_rows(self._chat, self._terminal):
            asking = asyncio.ensure_future(self._terminal.ask(self._question(rows)))
            try:
                while not asking.done() and work_rows(self._chat, self._terminal) == rows:
                    await asyncio.wait((asking,), timeout=TICK)
                    self._terminal.app.pace.request_frame()
            finally:
                asking.cancel()  # what is at work has changed, so it is asked anew
                await asyncio.wait((asking,))
            if not asking.cancelled() and not await self._do(asking.result(), rows):
                return
        self._chat.front.say("Nothing runs in the background.", dim=True)

    def _question(self, rows: Sequence[WorkRow]) -> DialogQuestion:
        choices = tuple(DialogChoice(row.id, row.label) for row in rows)
        before = next((at for at, row in enumerate(rows) if row.id == self._selected), 0)
        files = {row.id: row.file for row in rows}

        def about(work: str) -> list[str]:
            self._selected = work
            return [f"  {line}" for line in self._output(work, files[work], MAX_SHOWN).rstrip().split("\n")]

        letters = {"x": STOP}
        return DialogQuestion(
            "Tasks and agents", choices, hasty=True, hint=HINT, selected=before, about=about, letters=letters
        )

    async def _do(self, reply: DialogReply | None, rows: Sequence[WorkRow]) -> bool:
        """Do what was chosen; False = the panel was left."""
        if reply is None:
            return False
        if reply.text == STOP:
            try:
                await self._chat.session.background.stop_task(reply.value)
                self._chat.front.say(f"{reply.value} was stopped.", "good")
            except HandrailError as error:
                self._chat.front.say(str(error), "bad")
                return False
            return True
        file = next(row.file for row in rows if row.id == reply.value)
        await self._chat.front.page(self._output(reply.value, file, MAX_TEXT))
        return True

    def _output(self, work: str, file: str, most: int) -> str:
        """The end of what it has written; of an agent at work, what it did so far and does now."""
        node = self._terminal.view.agents.find(work)
        if node is not None:
            return "\n".join([*node.log, f"- {node.doing}"])
        return read_end(file, most)


def task_command(terminal: Terminal) -> ChatCommand:
    """The command that shows the panel."""

    async def show(chat: Chat, _words: str) -> None:
        await TaskPanel(chat, terminal).show()

    return ChatCommand("Show running tasks and agents with their output, and stop them", show)

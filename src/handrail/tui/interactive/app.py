"""
The terminal application: the live region, the keys, and the frames.

    open end of the answer, running calls
    a question with its choices
    > input line
    completions
    footer

It knows nothing of sessions: what keys ask for is done by its `Actions`.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.completion import Completer
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, has_focus, vi_mode, vi_navigation_mode
from prompt_toolkit.history import History
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent, merge_key_bindings
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import BufferControl, ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.dimension import Dimension

from handrail.tui.interactive.completion import MAX_SHOWN
from handrail.tui.interactive.dialog import DialogQuestion, DialogReply, Questions, question_lines
from handrail.tui.interactive.dialog_keys import DialogKeys
from handrail.tui.interactive.frames import FrameOutput, ScreenBlock, install
from handrail.tui.interactive.graphemes import GraphemeBuffer, GraphemeProcessor
from handrail.tui.interactive.input_line import PastedTexts
from handrail.tui.interactive.key_bindings import KeyAction, bind
from handrail.tui.interactive.pace import Pace
from handrail.tui.interactive.paint import Theme, paint
from handrail.tui.interactive.row_screen import LinesWindow
from handrail.tui.text import clip

ESCAPE_WAIT = 0.1
"""Seconds that Esc waits for the rest of a key that begins with it."""


class Actions(Protocol):
    """What the terminal does with what was typed."""

    def submit(self, text: str) -> None: ...

    def interrupt(self) -> None: ...

    def leave(self) -> None:
        """Ctrl+C: interrupt; twice, leave."""
        ...

    def end(self) -> None: ...

    def act(self, name: str) -> None:
        """Do what a key is bound to: next-mode, transcript, tasks, history-search, paste-image."""
        ...

    def take_back(self) -> str:
        """The newest message that waits, taken out of the queue; empty if none waits."""
        ...


class Drawing(Protocol):
    """What is drawn above and below the input line."""

    @property
    def is_busy(self) -> bool: ...

    def settle(self) -> None: ...

    def live_lines(self, width: int, height: int) -> list[str]: ...

    def footer_lines(self, width: int) -> list[str]: ...


def _open_editor(event: KeyPressEvent) -> None:
    event.current_buffer.open_in_editor()


class TerminalApp:
    """Draws, and passes on what is typed."""

    def __init__(
        self,
        output: FrameOutput,
        source: Input,
        *,
        actions: Actions,
        drawing: Drawing,
        history: History,
        pasted: PastedTexts,
        completer: Completer,
        keys: dict[str, tuple[str, ...]],
        theme: Callable[[], Theme],
    ) -> None:
        self._output = output
        self._source = source
        self._comes_back = False
        self._actions = actions
        self._drawing = drawing
        self._theme = theme
        self._arming: asyncio.TimerHandle | None = None
        self._last_key = 0.0
        self._live: list[str] = []
        self._live_size = (0, 0)
        self._has_news = False
        self._pasted = pasted
        self.questions = Questions(time.monotonic, self._questions_changed)
        self.buffer = GraphemeBuffer(multiline=True, history=history, completer=completer, complete_while_typing=True)
        self._edit = GraphemeBuffer(multiline=True)
        graphemes = GraphemeProcessor(output.marks)
        self._input_window = Window(
            BufferControl(self.buffer, [graphemes], focus_on_click=False),
            wrap_lines=True,
            dont_extend_height=True,
            height=lambda: Dimension(min=1, max=max(self._output.get_size().rows // 3, 1)),
            get_line_prefix=lambda line, wrapped: "> " if line == wrapped == 0 else "  ",
        )
        self._edit_window = Window(
            BufferControl(self._edit, [graphemes]),
            wrap_lines=True,
            dont_extend_height=True,
            height=lambda: Dimension(min=1, max=max(self._output.get_size().rows // 3, 1)),
            get_line_prefix=lambda line, wrapped: "  : " if line == wrapped == 0 else "    ",
        )
        self._selected_row = 0
        self._choices_window = LinesWindow(self._question_lines, lambda: self._selected_row)
        self._dialog_keys = DialogKeys(self.questions, self._edit, self._questions_changed)
        self.application: Application[None] = Application(
            layout=Layout(self._container(), focused_element=self._input_window),
            key_bindings=merge_key_bindings(
                [
                    self._fixed_bindings(),
                    bind(self._key_actions(), keys),
                    self._dialog_keys.bindings(has_focus(self._choices_window), has_focus(self._edit)),
                ]
            ),
            output=output,
            input=source,
            full_screen=False,
            erase_when_done=True,
            enable_page_navigation_bindings=False,
            terminal_size_polling_interval=None,
            max_render_postpone_time=None,
        )
        self.application.timeoutlen = ESCAPE_WAIT
        self.application.ttimeoutlen = ESCAPE_WAIT / 2
        self.application.key_processor.before_key_press += self._note_key
        self._renderer = install(self.application, output)
        self._renderer.before_frame = self._prepare_frame
        self.pace = Pace(
            self._draw_changes,
            lambda: drawing.is_busy,
            lambda: theme().has_colour,
            lambda: self.application.invalidated,
        )

    # Layout

    def _container(self) -> HSplit:
        asks = Condition(lambda: self.questions.current is not None)
        edits = Condition(lambda: (current := self.questions.current) is not None and current.editing)
        completes = Condition(lambda: self.buffer.complete_state is not None and has_focus(self.buffer)())
        return HSplit(
            [
                LinesWindow(lambda: self._live),
                ConditionalContainer(self._choices_window, asks),
                ConditionalContainer(self._edit_window, edits),
                self._input_window,
                ConditionalContainer(LinesWindow(self._completion_lines), completes),
                LinesWindow(lambda: self._drawing.footer_lines(self._output.get_size().columns)),
            ]
        )

    def _question_lines(self) -> list[str]:
        current = self.questions.current
        if current is None:
            return []
        size = self._output.get_size()
        room = max(size.rows - 3 - len(self._live) - (3 if current.editing else 0), 4)
        lines, self._selected_row = question_lines(current, self.questions.count, size.columns, room, self._theme())
        return lines

    def _completion_lines(self) -> list[str]:
        state = self.buffer.complete_state
        if state is None:
            return []
        width, theme = self._output.get_size().columns, self._theme()
        first = max(0, min((state.complete_index or 0) - MAX_SHOWN // 2, len(state.completions) - MAX_SHOWN))
        lines: list[str] = []
        for at, each in list(enumerate(state.completions))[first : first + MAX_SHOWN]:
            mark = ">" if at == state.complete_index else " "
            name = clip(f"{mark} {each.display_text}", max(width // 2, 20))
            about = clip(f"  {each.display_meta_text}", max(width - len(name), 0))
            lines.append(paint(name, theme.selected if mark == ">" else theme.accent) + paint(about, theme.dim))
        return lines

    # Frames

    def commit(self, block: ScreenBlock) -> None:
        """Put a block above the live region."""
        self._renderer.commit(block)
        self.pace.request_frame()

    def _draw_changes(self) -> Iterator[None]:
        """Draw what has changed, step by step, and show it with the next frame."""
        size = self._output.get_size()
        self._drawing.settle()
        yield
        yield from self._renderer.draw_waiting(size.columns)
        share = 3 if self.questions.current is None else 8  # a question needs the room
        self._live = self._drawing.live_lines(size.columns, max(size.rows // share, 2))
        self._live_size, self._has_news = size, True
        self.application.invalidate()

    def _prepare_frame(self) -> bool:
        """Whether there is something new to show; the echo of a key does not wait for that."""
        if self._live_size != self._output.get_size():
            self._draw_all()
        has_news, self._has_news = self._has_news, False
        return has_news

    def _draw_all(self) -> None:
        for _ in self._draw_changes():
            pass

    # Questions

    async def ask(self, question: DialogQuestion) -> DialogReply | None:
        """The person's answer; None = the question was left. Cancelling takes it back."""
        return await self.questions.ask(question)

    def _questions_changed(self) -> None:
        current, layout = self.questions.current, self.application.layout
        if current is None or not current.armed:
            layout.focus(self._input_window)
        elif current.editing:
            layout.focus(self._edit_window)
        else:
            layout.focus(self._choices_window)
        self._arm()
        self.pace.request_frame()
        self.application.invalidate()

    def _arm(self) -> None:
        if self._arming is not None:
            self._arming.cancel()
            self._arming = None
        if (left := self.questions.arm(self._last_key)) > 0:
            self._arming = asyncio.get_running_loop().call_later(left, self._arm)

    def _note_key(self, _processor: object) -> None:
        self._last_key = time.monotonic()

    # Keys

    def _key_actions(self) -> list[KeyAction]:
        typing = has_focus(self.buffer)
        editing = has_focus(self._edit) & Condition(lambda: bool(self._edit.text))
        named = ("next-mode", "transcript", "tasks", "history-search", "paste-image")
        # in vi, Esc ends what is being typed before it interrupts
        ends_typing = vi_mode & ~vi_navigation_mode & typing & Condition(lambda: bool(self.buffer.text))
        return [
            KeyAction("submit", self._on_submit, typing),
            KeyAction("newline", lambda event: event.current_buffer.insert_text("\n")),
            KeyAction("interrupt", lambda _event: self._on_escape(), ~ends_typing),
            KeyAction("leave", lambda _event: self._actions.leave()),
            KeyAction("end", lambda _event: self._actions.end(), typing & Condition(lambda: not self.buffer.text)),
            KeyAction("end", lambda _event: self._on_escape(), ~typing & ~editing),
            KeyAction("editor", _open_editor, typing),
            KeyAction("redraw", lambda _event: self._renderer.commit_again()),
            KeyAction("suspend", lambda _event: self.suspend()),
            *(KeyAction(name, lambda _event, name=name: self._actions.act(name)) for name in named),  # type: ignore[misc]  # a default binds the name
        ]

    def _on_submit(self, event: KeyPressEvent) -> None:
        state = self.buffer.complete_state
        if state is not None and state.current_completion is not None:
            self.buffer.apply_completion(state.current_completion)
            if not self.buffer.text.startswith("/"):  # a prompt goes on behind the name of a file
                return
        text = self.buffer.text
        if text.endswith("\\"):
            self.buffer.delete_before_cursor()
            self.buffer.insert_text("\n")
            return
        if text.strip():
            self.buffer.append_to_history()
        self.buffer.reset()
        self._actions.submit(text)
        self._draw_all()  # what was sent stands above with the frame in which it leaves the input line

    def _on_escape(self) -> None:
        if self.buffer.complete_state is not None and has_focus(self.buffer)():
            self.buffer.cancel_completion()
        elif not self._dialog_keys.go_back():
            self._actions.interrupt()

    def _fixed_bindings(self) -> KeyBindings:
        bindings = KeyBindings()
        first_line = Condition(lambda: self.buffer.document.cursor_position_row == 0 and not self.buffer.text)
        add = bindings.add
        add(Keys.BracketedPaste)(self._on_paste)
        add("up", filter=has_focus(self.buffer) & first_line)(self._on_up)
        return bindings

    def _on_paste(self, event: KeyPressEvent) -> None:
        if self._dialog_keys.paste(event.data.replace("\r\n", "\n").replace("\r", "\n")):
            return
        if event.current_buffer is self.buffer:
            self.buffer.insert_text(self._pasted.fold(event.data))
        else:
            event.current_buffer.insert_text(event.data.replace("\r\n", "\n").replace("\r", "\n"))

    def _on_up(self, event: KeyPressEvent) -> None:
        if text := self._actions.take_back():
            self.buffer.insert_text(text)
        else:
            self.buffer.auto_up(count=event.arg)

    # The whole

    def set_editing_mode(self, *, vi: bool) -> None:
        """Edit like vi, or like Emacs."""
        self.application.editing_mode = EditingMode.VI if vi else EditingMode.EMACS

    @property
    def has_vi_keys(self) -> bool:
        """Whether editing is like vi."""
        return self.application.editing_mode is EditingMode.VI

    @property
    def takes_vi_commands(self) -> bool:
        """Whether letters are commands of vi now, instead of text."""
        return self.has_vi_keys and self.application.vi_state.input_mode is InputMode.NAVIGATION

    async def run(self, pre_run: Callable[[], None]) -> None:
        """Draw until `stop`."""
        await self.application.run_async(pre_run=pre_run, handle_sigint=False, set_exception_handler=False)
        self._draw_all()
        self._renderer.commit_rest()

    def suspend(self) -> None:
        """Leave the terminal to the shell until it lets the program go on."""

        def stop() -> None:
            self._comes_back = True
            before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            os.kill(0, signal.SIGTSTP)  # with the others of a pipe
            signal.signal(signal.SIGTSTP, before)

        run_in_terminal(stop)

    def come_back(self) -> None:
        """Take the terminal again after the program was stopped from outside."""
        if not self._comes_back and self.application.is_running:
            self._source.raw_mode().__enter__()  # it is left when the application ends
            self._renderer.forget()
            self.application.invalidate()
        self._comes_back = False

    def stop(self) -> None:
        """Leave: the last frame has no live region."""
        self.questions.leave_all()
        if self.application.is_running and not self.application.is_done:
            self.application.exit()

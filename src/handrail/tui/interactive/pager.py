"""A long text on a screen of its own: scrolled, searched, and left with q."""

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import HSplit, Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.output import Output
from prompt_toolkit.widgets import SearchToolbar, TextArea

HINT = " q leaves, / searches, arrows and Page keys scroll "


async def show_pages(text: str, output: Output, source: Input) -> None:
    """Show the text until it is left; meanwhile the conversation goes on, and is drawn afterwards."""
    search = SearchToolbar()
    area = TextArea(text, read_only=True, scrollbar=True, search_field=search, wrap_lines=True)
    area.buffer.cursor_position = len(text)
    bindings = KeyBindings()
    for key in ("q", "escape", "c-c", "c-o"):
        bindings.add(key, eager=key == "escape")(lambda event: event.app.exit())
    bindings.add("g")(lambda _event: setattr(area.buffer, "cursor_position", 0))
    hint = Window(FormattedTextControl([("reverse", HINT)]), height=1, style="reverse")
    app: Application[None] = Application(
        Layout(HSplit([area, search, hint]), focused_element=area),
        key_bindings=bindings,
        full_screen=True,
        output=output,
        input=source,
    )
    async with in_terminal():
        await app.run_async(handle_sigint=False)

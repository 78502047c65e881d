"""An image from the clipboard. Terminals paste text only, so a program of the desktop is asked for it."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping

from handrail.errors import HandrailError
from handrail.processes.run import run as run_program

SECONDS, MAX_BYTES = 10.0, 50_000_000
APPLE_DATA = re.compile(rb"data PNGf((?:[0-9A-Fa-f]{2})+)")
"""How `osascript` prints an image."""
BY_PATH = "Or write or drop the path of an image file into the message."


def clipboard_commands(
    env: Mapping[str, str], platform: str, find: Callable[[str], str | None] = shutil.which
) -> Iterator[list[str]]:
    """The programs here that print the image in the clipboard, the best first."""
    candidates = (
        (bool(env.get("WAYLAND_DISPLAY")), ["wl-paste", "--no-newline", "--type", "image/png"]),
        (bool(env.get("DISPLAY")), ["xclip", "-selection", "clipboard", "-target", "image/png", "-out"]),
        (platform == "darwin", ["pngpaste", "-"]),
        (platform == "darwin", ["osascript", "-e", "the clipboard as «class PNGf»"]),
    )
    for is_usable, (name, *arguments) in candidates:
        if is_usable and (program := find(name)):
            yield [program, *arguments]


def why_none(env: Mapping[str, str], platform: str) -> str:
    """Why there is no way to the clipboard, and what to do."""
    if platform == "darwin":
        return f"No program here reads images from the clipboard. Install pngpaste. {BY_PATH}"
    if not env.get("WAYLAND_DISPLAY") and not env.get("DISPLAY"):
        return f"There is no desktop whose clipboard could be read, for example over ssh. {BY_PATH}"
    package = "wl-clipboard (wl-paste)" if env.get("WAYLAND_DISPLAY") else "xclip"
    return f"No program here reads images from the clipboard. Install {package}. {BY_PATH}"


async def read_clipboard_image(env: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bytes:
    """
    The image in the clipboard.

    Raises:
        HandrailError: there is none, or no program to read it.
    """
    commands = list(clipboard_commands(env, platform))
    if not commands:
        raise HandrailError(why_none(env, platform))
    for argv in commands:
        try:
            ended = await run_program(argv, cwd="/", env=env, timeout=SECONDS, max_bytes=MAX_BYTES)
        except OSError as error:
            raise HandrailError(f"{argv[0]} cannot be started: {error}. {BY_PATH}") from error
        found = APPLE_DATA.search(ended.stdout)
        data = bytes.fromhex(found[1].decode()) if found else ended.stdout
        if ended.code == 0 and data:
            return data
    raise HandrailError(f"There is no image in the clipboard. Copy one first. {BY_PATH}")

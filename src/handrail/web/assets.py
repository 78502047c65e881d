"""The files of the page."""

from functools import cache
from importlib import resources

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
INDEX = "index.html"


@cache
def assets() -> dict[str, tuple[bytes, str]]:
    """The content and the type of each file, by its name."""
    found: dict[str, tuple[bytes, str]] = {}
    for file in (resources.files("handrail.web") / "static").iterdir():
        kind = TYPES.get(file.name[file.name.rfind(".") :])
        if kind:
            found[file.name] = (file.read_bytes(), kind)
    return found

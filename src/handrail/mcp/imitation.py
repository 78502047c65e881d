"""
Finds names that imitate others: servers that look like another one, and tools that look like those of another server.

Letters that look alike are compared as one, and what cannot be seen is left out of the comparison.
"""

import unicodedata
from collections.abc import Iterable

from handrail.tools.mcp_names import server_name

RESERVED = frozenset(("handrail", "mcp", "builtin", "built-in", "system"))
PLUGIN = "plugin_"
"""How the names of servers of plugins begin."""
# Letters of other scripts that look like a Latin letter in most fonts.
LOOK_ALIKES = str.maketrans(
    "аеорсухіјѕԁһӏԛԝαοερτνκιАВЕКМНОРСТХІЈЅΑΒΕΗΙΚΜΝΟΡΤΧΥΖⅼ",  # that is what they are for
    "aeopcyxijsdhlqwaoeptvkiabekmhopctxijsabehikmnoptxyzl",
)


def skeleton(name: str) -> str:
    """The name as an eye sees it: look-alikes as one letter, without case, separators and what is invisible."""
    plain = unicodedata.normalize("NFKC", name).translate(LOOK_ALIKES).casefold().translate(LOOK_ALIKES)
    letters = unicodedata.normalize("NFKD", plain)
    return "".join(each for each in letters if each.isalnum() and not unicodedata.combining(each))


def server_problem(name: str, others: Iterable[str]) -> str:
    """Why a server may not have this name; empty if it may. `others` are the names of the servers before it."""
    if bad := _hidden_character(name):
        return f"its name holds the invisible character {bad}"
    if name.casefold() in RESERVED or name.casefold().startswith(PLUGIN):
        return f"the name {name!r} is reserved"
    plain, seen = server_name(name).casefold(), skeleton(name)
    for other in others:
        alike = server_name(other).casefold() == plain or (not (other + name).isascii() and skeleton(other) == seen)
        if other != name and alike:
            return f"its name looks like that of the server {other!r}"
    return ""


def tool_problem(name: str, builtin: Iterable[str]) -> str:
    """Why a tool may not have this name; empty if it may. `builtin` are the names of the built-in tools."""
    if bad := _hidden_character(name):
        return f"its name holds the invisible character {bad}"
    if name.casefold().startswith("mcp__"):
        return "its name looks like that of a tool of another server"
    if not name.isascii():
        seen = skeleton(name)
        if alike := next((other for other in builtin if skeleton(other) == seen), ""):
            return f"its name looks like that of the built-in tool {alike}"
    return ""


def _hidden_character(name: str) -> str:
    """A character of the name that shows nothing or changes how the rest is shown."""
    found = next((each for each in name if unicodedata.category(each) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")), "")
    return f"U+{ord(found):04X}" if found else ""

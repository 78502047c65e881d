"""`handrail mcp add-json`: write the entry of a server as it is given."""

import argparse
import json

from handrail.cli.mcp.add import add_entry
from handrail.errors import HandrailError


def run(chosen: argparse.Namespace) -> int:
    """Write the entry."""
    try:
        entry = json.loads(chosen.entry)
    except ValueError as error:
        raise HandrailError(f'the entry is not JSON: {error}. Write it like \'{{"command": "uvx"}}\'.') from error
    if not isinstance(entry, dict):
        raise HandrailError(f"the entry must be an object, and is {str(entry)[:100]!r}.")
    return add_entry(chosen, entry)

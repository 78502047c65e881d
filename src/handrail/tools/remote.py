"""Servers of other machines that start runs, as the person named them."""

from handrail.records import record


@record
class RemoteServer:
    """A `handrail serve`: its name in the settings, its address and our token for it."""

    name: str
    url: str
    token: str

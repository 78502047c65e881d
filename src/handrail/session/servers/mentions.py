"""What an at sign in a prompt can name of MCP servers: `@server:uri` brings that resource along."""

from handrail.session.servers.servers import Servers

MAX_FOUND = 20


def server_mentions(servers: Servers, begun: str) -> tuple[tuple[str, str], ...]:
    """What may follow, each with what it is: the names of servers, and behind a name and a colon its resources."""
    offered = servers.offers.resources()
    server, colon, rest = begun.lower().partition(":")
    if not colon:
        names = [name for name in servers.by_status() if server in name.lower() and offered.get(name) != ()]
        return tuple((f"{name}:", "resources of an MCP server") for name in names)
    found = [
        (f"{name}:{each.uri}", each.description or each.name)
        for name, resources in offered.items()
        for each in resources
        if name.lower() == server and not each.is_template and rest in f"{each.uri} {each.name}".lower()
    ]
    return tuple(found[:MAX_FOUND])

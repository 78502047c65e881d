"""The arguments of `handrail mcp`; each sub-command is a module of `handrail.cli.mcp`, imported only when it runs."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from handrail.cli.sessions_arguments import add_subcommand, comma_separated, whole
from handrail.lazy import lazy

if TYPE_CHECKING:
    from handrail.cli import permission_flags
else:
    permission_flags = lazy("handrail.cli.permission_flags")

SCOPES = ("local", "project", "user")
SERVER = "name of a configured server, or the address of any other one"


def _scope(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("-s", "--scope", choices=SCOPES, help=text)


def _reach(parser: argparse.ArgumentParser) -> None:
    """How a server is reached that is not configured."""
    parser.add_argument("-H", "--header", metavar="'NAME: VALUE'", action="append", default=[], help="for an address")
    parser.add_argument("-t", "--transport", choices=("http", "sse", "ws"), help="for an address (default: http)")


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the server")
    parser.add_argument("target", metavar="COMMAND|URL", help="program to start, or address")
    parser.add_argument(
        "args", metavar="ARG", nargs="*", default=[], help="arguments of the program; put -- before the program"
    )
    _scope(parser, "local: for you, here (the default); project: .mcp.json, for all; user: for you, everywhere")
    parser.add_argument("-t", "--transport", choices=("stdio", "http", "sse", "ws"), help="(default: by the target)")
    parser.add_argument(
        "-e", "--env", metavar="NAME=VALUE", action="append", default=[], help="variable of the program"
    )
    parser.add_argument("-H", "--header", metavar="'NAME: VALUE'", action="append", default=[], help="for an address")
    parser.add_argument("--timeout", metavar="MS", type=whole, help="milliseconds that a call may take")
    parser.add_argument("--sandbox", action="store_true", help="start the program in the sandbox")
    parser.add_argument("--client-id", metavar="ID", help="id of an OAuth client that is already registered")
    parser.add_argument("--client-secret", metavar="'${NAME}'", help="its secret: name a variable that holds it")
    parser.add_argument("--callback-port", metavar="PORT", type=whole, help="port of its redirect address")
    parser.add_argument("--force", action="store_true", help="replace a server of the same name and scope")


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the server")
    parser.add_argument("entry", metavar="JSON", help='its entry, such as {"type": "http", "url": "https://..."}')
    _scope(parser, "as for add (default: local)")
    parser.add_argument("--force", action="store_true", help="replace a server of the same name and scope")


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", metavar="SERVER|URL", nargs="?", help="list the tools of this one, not the servers")
    _reach(parser)


def _get(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the server")


def _remove(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the server")
    _scope(parser, "the one of this scope, if several have it")


def _call(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", metavar="SERVER|URL", help=SERVER)
    parser.add_argument("tool", metavar="TOOL", help="name of the tool")
    parser.add_argument("input", metavar="JSON", nargs="?", default="{}", help="its input; - reads standard input")
    parser.add_argument(
        "--elicitation",
        choices=("accept-defaults", "decline", "cancel"),
        default="cancel",
        help="the answer to questions of the server (default: cancel)",
    )
    _reach(parser)


def _test(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", metavar="SERVER|URL", nargs="?", help="(default: all configured servers)")
    _reach(parser)


def _lock(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("servers", metavar="SERVER", nargs="*", help="(default: all servers that may be used)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 and a diff if tools changed")


def _login(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", metavar="SERVER|URL", help=SERVER)
    parser.add_argument("--no-browser", action="store_true", help="only print the address to visit")


def _logout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", metavar="SERVER|URL", help=SERVER)


def _serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gateway", action="store_true", help="put the MCP servers configured here behind this one")
    parser.add_argument(
        "--tools", metavar="MODULE", action="append", default=[], help="offer the tools of a Python module"
    )
    parser.add_argument(
        "--builtin", type=comma_separated, metavar="A,B", help="offer these built-in tools ('' = none; default: by use)"
    )
    parser.add_argument("--http", action="store_true", help="over HTTP, at /mcp; without it, standard input and output")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen at (default: 127.0.0.1); others need TLS"
    )
    parser.add_argument("--port", type=whole, default=0, help="port to listen at (default: a free one)")
    parser.add_argument("--tls-cert", metavar="FILE", default="", help="certificate (PEM)")
    parser.add_argument("--tls-key", metavar="FILE", default="", help="its key (PEM)")
    parser.add_argument(
        "--name", metavar="HOST", action="append", default=[], help="another name by which clients reach it"
    )
    parser.add_argument("--no-token", action="store_true", help="admit every program on this machine; loopback only")
    parser.add_argument("--clients", metavar="FILE", default="", help="clients with a token and rules each (JSON)")
    parser.add_argument(
        "--mcp-config", metavar="FILE|JSON", action="append", default=[], help="more servers for --gateway"
    )
    parser.add_argument("--strict-mcp-config", action="store_true", help="only the servers of --mcp-config")
    permission_flags.add_flags(parser)


def _reset(parser: argparse.ArgumentParser) -> None:
    """It takes nothing."""


SUBCOMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], str]] = {
    "add": ("add a server", _add, "add"),
    "add-json": ("add a server by its entry in JSON", _add_json, "add_json"),
    "list": ("list the servers, or the tools of one", _list, "list_servers"),
    "get": ("show the entry of a server, its file, and whether it is used", _get, "get"),
    "remove": ("remove a server", _remove, "remove"),
    "call": ("call a tool of a server without a model", _call, "call"),
    "serve": ("be an MCP server: governed tools for other agents", _serve, "serve"),
    "test": ("connect, and say what a server offers; exit code 1 if it fails", _test, "test"),
    "lock": ("pin the tools of servers as they are now, or check them", _lock, "lock"),
    "login": ("sign in to a server", _login, "login"),
    "logout": ("sign out of a server", _logout, "logout"),
    "reset-project-choices": ("forget which servers of .mcp.json were approved or refused here", _reset, "reset"),
}
"""Name -> help, arguments, and the module of `handrail.cli.mcp` whose `run` is called."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The commands of `handrail mcp`."""
    inner = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    for name, (text, add_arguments, _module) in SUBCOMMANDS.items():
        each = add_subcommand(inner, name, text)
        add_arguments(each)
        each.add_argument("--json", action="store_true", help="print JSON")

"""The arguments of `handrail serve`; its implementation is imported only when it runs."""

import argparse
from typing import TYPE_CHECKING

from handrail.cli.view_arguments import port
from handrail.lazy import lazy

if TYPE_CHECKING:
    from handrail.cli import permission_flags
else:
    permission_flags = lazy("handrail.cli.permission_flags")


def arguments(parser: argparse.ArgumentParser) -> None:
    """What may be started, for whom, and where to listen."""
    parser.add_argument("--config", metavar="FILE", help="folders, policies and clients (JSON); see docs/serve.md")
    parser.add_argument(
        "--folder",
        dest="folders",
        metavar="NAME=PATH",
        action="append",
        default=[],
        help="instead of --config: a folder for one client, whose new token is printed; can be repeated",
    )
    parser.add_argument("--host", metavar="ADDRESS", help="where to listen (default: 127.0.0.1)")
    parser.add_argument("--port", metavar="N", type=port, help="the port (default: a free one)")
    parser.add_argument("--tls-cert", metavar="FILE", help="a PEM certificate; needed beyond this machine")
    parser.add_argument("--tls-key", metavar="FILE", help="its key")
    parser.add_argument(
        "--new-token", action="store_true", help="print a token, and its digest for the file of --config, and exit"
    )
    parser.add_argument("--check", action="store_true", help="read the configuration, print what it allows, and exit")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    permission_flags.add_flags(parser)
    parser.epilog = (
        "Runs are governed by the settings of their folder and by the policy that the configuration names; with "
        "--folder, the permission flags are that policy. Ctrl+C ends the server; runs go on when it starts again."
    )

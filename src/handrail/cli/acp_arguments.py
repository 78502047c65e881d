"""The arguments of `handrail acp`."""

import argparse

from handrail.cli.permission_flags import add_flags


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add them to a parser."""
    parser.add_argument("--model", default="", help="name of the model (default: that of settings and environment)")
    parser.add_argument("--provider", default="", help="wire format; told from the model if left out")
    parser.add_argument("--base-url", default="", help="server to ask, for example http://127.0.0.1:8080/v1")
    add_flags(parser)
    parser.epilog = "Editors start it and speak the Agent Client Protocol with it; docs/acp.md says how to set it up."

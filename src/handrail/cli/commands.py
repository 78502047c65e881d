"""The commands of `handrail` and their arguments, which a run of an agent does not load."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from handrail import __version__
from handrail.cli import (
    acp_arguments,
    audit_arguments,
    batch_arguments,
    mcp_arguments,
    schedule_arguments,
    serve_arguments,
    sessions_arguments,
    stats_arguments,
    view_arguments,
)
from handrail.cli.command_parser import CommandParser
from handrail.cli.sessions_arguments import add_subcommand, comma_separated, whole
from handrail.lazy import lazy

if TYPE_CHECKING:
    from handrail.cli import permission_flags
else:
    permission_flags = lazy("handrail.cli.permission_flags")


def _call(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tool", metavar="TOOL", help="name of the tool, see `handrail tools`")
    parser.add_argument("input", metavar="JSON", help="its input as a JSON object; - reads it from standard input")
    parser.add_argument("--json", action="store_true", help="print the whole outcome as one JSON object")
    permission_flags.add_flags(parser)
    parser.epilog = "Put flags that take several values after TOOL and JSON, or end them with --."


def _shell(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "line", metavar="LINE", help="the command line, as one argument; - reads it from standard input"
    )
    parser.add_argument("--json", action="store_true", help="print the whole analysis as one JSON object")
    parser.add_argument("--workspace", metavar="DIR", action="append", help="a folder it may read (default: --cwd)")
    parser.add_argument("--cwd", metavar="DIR", help="the folder it would run in (default: this one)")
    parser.add_argument("--home", metavar="DIR", help="the home folder of the user who would run it (default: yours)")


def _permissions(parser: argparse.ArgumentParser) -> None:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--permission-mode",
        "--mode",
        dest="mode",
        metavar="MODE",
        default="",
        help="the permission mode (default: that of the settings)",
    )
    common.add_argument("--cwd", metavar="DIR", help="the folder that calls are made in (default: this one)")
    common.add_argument(
        "--settings",
        metavar="FILE|JSON",
        action=permission_flags.StoreValue,
        default="",
        help="more settings, besides those of the folder",
    )
    common.add_argument("--add-dir", metavar="DIR", action="append", default=[], help="one more working folder")
    common.add_argument("--json", action="store_true", help="print JSON; test and lint: one object per line")
    hooks = argparse.ArgumentParser(add_help=False, parents=[common])
    hooks.add_argument("--run-hooks", action="store_true", help="run the hooks, instead of only naming them")
    hooks.add_argument("--trust", action="store_true", help="decide as if the folder were trusted")
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    explain = add_subcommand(what, "explain", "why a call is allowed, asked about or denied", parents=[hooks])
    explain.add_argument("tool", metavar="TOOL", help="name of the tool; or the whole call: 'Bash(git push)'")
    explain.add_argument("input", metavar="JSON", nargs="?", help="its input as a JSON object")
    test = add_subcommand(what, "test", "check a policy against examples, one JSON object per line", parents=[hooks])
    test.add_argument("file", metavar="FILE", help="the examples: tool, input, expect; - reads standard input")
    add_subcommand(what, "lint", "find rules that mislead: too broad, shadowed, or never matching", parents=[common])
    simulate = add_subcommand(what, "simulate", "decide recorded calls again, by today's rules", parents=[hooks])
    calls = simulate.add_mutually_exclusive_group(required=True)
    calls.add_argument("--audit", metavar="FILE", nargs="+", help="the calls of these audit logs")
    calls.add_argument("--session", metavar="ID", help="the calls of a session")
    calls.add_argument("--sessions", action="store_true", help="the calls of all sessions of the folder")


def _tools(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tools", type=comma_separated, metavar="A,B", help="only these, as in a run")
    parser.add_argument("--connect", action="store_true", help="start the MCP servers and ask them for their tools")
    permission_flags.add_flags(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON array with everything known about each tool")


def _undo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--list", action="store_true", help="show the changes, and change nothing")
    parser.add_argument("--to", metavar="N", help="restore files as they were before change N, or at a named point")
    _redo(parser)


def _redo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "session",
        metavar="SESSION",
        nargs="?",
        help="id, beginning of an id, or title (default: the newest in this folder)",
    )
    parser.add_argument(
        "--force", action="store_true", help="also restore files that another program has changed since"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--width", type=whole, metavar="N", default=0, help="columns of the timeline (default: the terminal's)"
    )


def _trust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", nargs="?", default=".", help="the folder (default: this one)")
    parser.add_argument("-y", "--yes", action="store_true", help="trust it without a question, for scripts")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--show", action="store_true", help="only show what would be trusted")
    way.add_argument("--list", action="store_true", help="list all trusted folders")
    way.add_argument("--revoke", action="store_true", help="no longer trust the folder")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _config(parser: argparse.ArgumentParser) -> None:
    ways = parser.add_subparsers(dest="way", metavar="get|set|unset|list|schema", required=True)
    get = add_subcommand(ways, "get", "print the value in effect")
    put = add_subcommand(ways, "set", "write a value into a settings file")
    unset = add_subcommand(ways, "unset", "remove a value from a settings file")
    listed = add_subcommand(ways, "list", "print all settings in effect")
    add_subcommand(ways, "schema", "print the JSON Schema of settings files")
    for way in (get, put, unset):
        way.add_argument("key", metavar="KEY", help="for example permissions.defaultMode")
    put.add_argument("value", metavar="VALUE", help="JSON, or plain text where text is expected")
    scopes = ("user", "project", "local")
    for way in (put, unset):
        way.add_argument("--scope", choices=scopes, help="the file to write (default: user)")
    for way in (get, listed):
        way.add_argument("--scope", choices=scopes, help="look only in the files of this source")
        way.add_argument("--json", action="store_true", help="print JSON")
        way.add_argument("--show-source", action="store_true", help="print file and line, too")


def _cassette(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    show = add_subcommand(what, "show", "show requests and answers in short, or one of them in full")
    show.add_argument("file", metavar="FILE", help="a cassette, made with --record")
    show.add_argument("number", metavar="N", nargs="?", type=whole, help="the number of one recording")
    diff = add_subcommand(what, "diff", "compare two cassettes; exit code 1 if they differ")
    diff.add_argument("first", metavar="FILE", help="a cassette")
    diff.add_argument("second", metavar="FILE2", help="another one, for example a newer recording")
    check = add_subcommand(what, "check", "check that it can be replayed and holds no secret; exit code 1 if not")
    check.add_argument("files", metavar="FILE", nargs="+", help="a cassette")
    for each in (show, diff, check):
        each.add_argument("--json", action="store_true", help="print JSON; check: one object per line")


def _skills(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(dest="what", metavar="list|show|new|check", required=True)
    listed = add_subcommand(what, "list", "list the skills of this folder")
    show = add_subcommand(what, "show", "show one skill: its fields and its text")
    new = add_subcommand(what, "new", "create a skill in .handrail/skills")
    check = add_subcommand(what, "check", "say what is wrong with skills here; exit code 1 if anything is")
    for each in (show, new):
        each.add_argument("name", metavar="NAME", help="the name of the skill")
    new.add_argument("--user", action="store_true", help="for yourself, in ~/.handrail/skills")
    for each in (listed, show, check):
        each.add_argument("--json", action="store_true", help="print JSON")


def _agents(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(dest="what", metavar="list|show|new|check", required=True)
    listed = add_subcommand(what, "list", "list the agents of this folder")
    show = add_subcommand(what, "show", "show one agent: its fields and its prompt")
    new = add_subcommand(what, "new", "create an agent in .handrail/agents")
    check = add_subcommand(what, "check", "say what is wrong with agents here; exit code 1 if anything is")
    for each in (show, new):
        each.add_argument("name", metavar="NAME", help="the name of the agent")
    new.add_argument("--user", action="store_true", help="for yourself, in ~/.handrail/agents")
    for each in (listed, show, check):
        each.add_argument("--json", action="store_true", help="print JSON")


def _plugins(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(dest="what", metavar="list|add|remove|enable|disable|check", required=True)
    listed = add_subcommand(what, "list", "list the plugins you added, and those of known marketplaces")
    add = add_subcommand(what, "add", "show what a plugin would run, ask, and add it")
    remove = add_subcommand(what, "remove", "remove a plugin, its copy and its options")
    enable = add_subcommand(what, "enable", "turn a plugin on, and set its options")
    disable = add_subcommand(what, "disable", "turn a plugin off")
    check = add_subcommand(what, "check", "say what is wrong with plugins, and what changed; exit code 1 if anything")
    check.add_argument("folder", metavar="FOLDER", nargs="?", help="a plugin or a marketplace that you are writing")
    add.add_argument(
        "source",
        metavar="SOURCE",
        help="the folder of a plugin or a marketplace, a git repository, or NAME@MARKETPLACE of a known one",
    )
    add.add_argument(
        "names", metavar="NAME", nargs="*", default=[], help="which plugins of a marketplace (default: its only one)"
    )
    add.add_argument("-y", "--yes", action="store_true", help="trust it without a question, for scripts")
    for each in (remove, enable, disable):
        each.add_argument("name", metavar="NAME", help="the plugin, with @MARKETPLACE if the name alone is not clear")
    for each in (enable, disable):
        each.add_argument("--scope", choices=("user", "project", "local"), default="user", help="the settings to write")
    for each in (add, enable):
        each.add_argument(
            "--set",
            metavar="KEY[=VALUE]",
            action="append",
            default=[],
            help="an option of the plugin; without a value, you are asked for it, and it is not shown",
        )
    for each in (listed, add, check):
        each.add_argument("--json", action="store_true", help="print JSON")


def _doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ping", action="store_true", help="ask the model for a word; this costs a few tokens")
    parser.add_argument("--json", action="store_true", help="print the findings as one JSON object")


COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], str]] = {
    "acp": ("let an editor run handrail as its agent", acp_arguments.arguments, "handrail.cli.acp"),
    "agents": ("list, show, create and check agents", _agents, "handrail.cli.agents"),
    "audit": (
        "show what was allowed, asked and denied, and why",
        audit_arguments.arguments,
        "handrail.cli.audit",
    ),
    "batch": (
        "run many tasks, check and compare what came of them",
        batch_arguments.arguments,
        "handrail.cli.batch",
    ),
    "call": ("run one governed tool call without a model", _call, "handrail.cli.call"),
    "cassette": ("show, compare and check recorded model answers", _cassette, "handrail.cli.cassette"),
    "config": ("show and change settings", _config, "handrail.cli.config"),
    "demo": ("watch an agent repair a small project, offline", _demo, "handrail.cli.demo"),
    "doctor": ("say what is installed, what protects you and what is wrong", _doctor, "handrail.cli.doctor"),
    "mcp": (
        "configure MCP servers, call their tools, or be one",
        mcp_arguments.arguments,
        "handrail.cli.mcp",
    ),
    "permissions": ("explain, test, lint and simulate permission rules", _permissions, "handrail.cli.permissions"),
    "plugins": ("add, list, enable, disable and check plugins", _plugins, "handrail.cli.plugins"),
    "redo": ("take back the last undo", _redo, "handrail.cli.redo"),
    "schedule": (
        "list, add, remove and start scheduled prompts",
        schedule_arguments.arguments,
        "handrail.cli.schedule",
    ),
    "serve": (
        "start governed runs for other machines and programs",
        serve_arguments.arguments,
        "handrail.cli.serve",
    ),
    "sessions": (
        "list, show, check, repair, export, import and delete sessions",
        sessions_arguments.arguments,
        "handrail.cli.sessions",
    ),
    "shell": ("say what a shell command would do, without running it", _shell, "handrail.cli.shell"),
    "skills": ("list, show, create and check skills", _skills, "handrail.cli.skills"),
    "stats": ("show what sessions cost and did", stats_arguments.arguments, "handrail.cli.stats"),
    "tools": ("list the tools of a run, and those held back", _tools, "handrail.cli.tools"),
    "trust": ("show what a folder's settings would do, and trust them", _trust, "handrail.cli.trust"),
    "undo": ("revert what an agent did to files", _undo, "handrail.cli.undo"),
    "view": ("open a page that shows what sessions did", view_arguments.arguments, "handrail.cli.view"),
}
"""Name -> help, arguments, and the module whose `run` is called; only that module is imported."""


def parser(command: str = "") -> argparse.ArgumentParser:
    """The parser of one command; of all, which takes ten times as long, if there is none of that name."""
    top = CommandParser(
        prog="handrail",
        usage='handrail ["PROMPT"] [flags]\n       handrail -p "PROMPT" [flags]\n       handrail COMMAND ...',
        description="The tool system for AI agents: hands for the model, rails for the people.",
        epilog="Without a command, it opens a conversation; with -p, it answers and exits. See handrail help COMMAND "
        "and handrail -p --help.",
    )
    top.add_argument("-v", "--version", action="version", version=f"handrail {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True, prog="handrail")
    for name in (command,) if command in COMMANDS else COMMANDS:
        text, arguments, _module = COMMANDS[name]
        arguments(commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}."))
    return top

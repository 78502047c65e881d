"""The permission flags, which `handrail -p` and `handrail call` share."""

import argparse
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from handrail.config.flags import SettingsFlags
from handrail.config.places import chosen_sources
from handrail.conversation.plain import plain, plain_json
from handrail.lazy import lazy

if TYPE_CHECKING:
    from handrail.cli import terminal
    from handrail.permissions import rules
else:
    rules = lazy("handrail.permissions.rules")
    terminal = lazy("handrail.cli.terminal")  # shutil and textwrap: only warnings on a terminal need them

EMPTY = "the value is empty; give one, or leave the flag out"
MODES = ("default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions", "manual")


class StoreValue(argparse.Action):
    """Takes a value that is not blank: an empty one is mostly a variable of a script that is not set."""

    def __call__(
        self, _parser: argparse.ArgumentParser, chosen: argparse.Namespace, value: Any, _flag: str | None = None
    ) -> None:
        if value == () or (isinstance(value, str) and not value.strip()):
            raise argparse.ArgumentError(self, EMPTY)
        setattr(chosen, self.dest, value)


def place(text: str) -> str:
    """The path of a file or folder, or what stands for one: an empty one would mean the current folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError(EMPTY)
    return text


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the permission flags to a parser."""
    parser.add_argument(
        "--settings", metavar="FILE|JSON", action=StoreValue, default="", help="more settings for this run"
    )
    parser.add_argument("--setting-sources", metavar="A,B", help="only these of user, project, local")
    modes = f"what runs without a question: {', '.join(MODES)}"
    parser.add_argument("--permission-mode", "--mode", choices=MODES, metavar="MODE", default="", help=modes)
    for name, text in (
        ("allowed", "allow rules: 'Read Bash(git log *)'"),
        ("disallowed", "deny rules; a bare name removes the tool"),
    ):
        for flag, shown in ((f"--{name}Tools", text), (f"--{name}-tools", argparse.SUPPRESS)):
            parser.add_argument(flag, dest=name, action="extend", nargs="+", default=[], metavar="RULE", help=shown)
    parser.add_argument(
        "--add-dir", type=place, action="extend", nargs="+", default=[], metavar="DIR", help="more working folders"
    )
    parser.add_argument("--trust", action="store_true", help="trust this folder's own settings in this run")
    parser.add_argument(
        "--bare",
        action="store_true",
        help="settings files can only restrict; no hooks, servers, memory files, commands or agents",
    )
    parser.add_argument("--safe-mode", action="store_true", help="like --bare, and flags can only restrict, too")
    parser.add_argument("--dangerously-skip-permissions", action="store_true", help="mode bypassPermissions")
    parser.add_argument(
        "--allow-dangerously-skip-permissions", action="store_true", help="make mode bypassPermissions available"
    )


def settings_flags(chosen: argparse.Namespace) -> SettingsFlags:
    """The settings flags of a command line."""
    return SettingsFlags(
        settings=chosen.settings,
        sources=chosen_sources(chosen.setting_sources),
        trust=chosen.trust,
        mode=chosen.permission_mode,
        bypass=chosen.dangerously_skip_permissions,
        allow_bypass=chosen.allow_dangerously_skip_permissions,
        allowed=tuple(chosen.allowed),
        disallowed=tuple(chosen.disallowed),
        folders=tuple(chosen.add_dir),
        wideners="policy" if chosen.safe_mode else "flags" if chosen.bare else "trusted",
    )


def without_effect(chosen: argparse.Namespace) -> list[str]:
    """Warnings about flags that --bare or --safe-mode switches off."""
    given = {"--trust": chosen.trust}
    if chosen.safe_mode:
        servers = getattr(chosen, "mcp_config", ())  # single calls have none
        given |= {"--allowedTools": chosen.allowed, "--add-dir": chosen.add_dir, "--mcp-config": servers}
    lost = [flag for flag, value in given.items() if value]
    if not lost or not (chosen.bare or chosen.safe_mode):
        return []
    return [f"{', '.join(lost)}: no effect with {'--safe-mode' if chosen.safe_mode else '--bare'}"]


def rule_problems(chosen: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Problems in the rules that deny, and in those that allow. Without rules nothing is imported."""
    if not chosen.allowed and not chosen.disallowed:
        return [], []

    def problems(words: list[str], kind: str) -> list[str]:
        made = [rules.parse_rule(text, rules.Behaviour(kind)) for word in words for text in rules.split_rules(word)]
        return [f"{found.text!r}: {found.message}" for found in made if isinstance(found, rules.RuleProblem)]

    return problems(chosen.disallowed, "deny"), problems(chosen.allowed, "allow")


def warn(text: str) -> None:
    """Write a warning to standard error; programs read standard output."""
    shown = terminal.ReportScreen(sys.stderr).notice(text) if sys.stderr.isatty() else f"handrail: {plain(text)}\n"
    sys.stderr.write(shown)
    sys.stderr.flush()


def report_failure(problem: str, *, as_json: bool) -> None:
    """Say why a command failed, also to a program that reads JSON."""
    warn(problem)
    if as_json:
        with suppress(OSError):  # the reader may have left
            print(plain_json({"error": problem}), flush=True)

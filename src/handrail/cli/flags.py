"""The flags of `handrail -p`. Unknown flags, and flags whose feature does not exist yet, give a warning."""

import argparse
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from handrail.cli.permission_flags import StoreValue, add_flags, place, rule_problems, without_effect
from handrail.cli.sessions_arguments import amount, number, whole
from handrail.errors import FlagError
from handrail.lazy import lazy
from handrail.records import record

if TYPE_CHECKING:
    import difflib

    from handrail.agents import definitions
    from handrail.builtin.worktree import enter_worktree
    from handrail.extensions import plugins
else:  # only those who name such a thing pay for it
    difflib = lazy("difflib")
    definitions = lazy("handrail.agents.definitions")
    enter_worktree = lazy("handrail.builtin.worktree.enter_worktree")
    plugins = lazy("handrail.extensions.plugins")

EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
EARLY_STARTS = ("permitted", "safe", "off", "all")
PROVIDERS = ("anthropic", "openai", "openai-responses")
MATCHES = ("exact", "conversation", "loose")

AGENTS_FORM = '{"name": {"description": "...", "prompt": "..."}}'
SCHEMA_FORM = '{"type": "object", "properties": {}}'


@record
class Flags:
    """The parsed flags, and warnings about those that have no effect."""

    chosen: argparse.Namespace
    warnings: tuple[str, ...]


class RunParser(argparse.ArgumentParser):
    """Raises FlagError for flags that cannot be used; the caller knows how to tell."""

    def error(self, message: str) -> NoReturn:
        raise FlagError(message, self.format_usage())


def read_flags(arguments: Sequence[str]) -> Flags:
    """The flags of a run; FlagError if a value cannot be right."""
    top = parser()
    chosen, unknown = top.parse_known_args(arguments)
    flags = [word.partition("=")[0] for word in unknown if word.startswith("-")]
    for flag in flags:
        _refuse_a_slip(top, flag)
    if forbidding := rule_problems(chosen)[0]:
        top.error(f"--disallowedTools: {forbidding[0]}")  # a limit would be lost
    if chosen.worktree:
        _read_worktree(top, chosen)
    warnings = [*without_effect(chosen)]
    warnings += [f"{flag} is not known and was ignored; see handrail -p --help" for flag in flags]
    if flags and chosen.prompt and chosen.words:
        words = " ".join(chosen.words)
        warnings.append(f"{words!r} was taken for the value of an unknown flag. Put the prompt right after -p")
        chosen.words = []
    return Flags(chosen, tuple(warnings))


def _read_worktree(top: argparse.ArgumentParser, chosen: argparse.Namespace) -> None:
    """Words that cannot name a worktree are the prompt, if there is no other."""
    if enter_worktree.NAME.fullmatch(chosen.worktree):
        return
    if chosen.words or chosen.prompt:
        name = chosen.worktree
        top.error(f"--worktree: {name!r} cannot be its name. Use letters, digits, dots, dashes and underscores")
    chosen.words, chosen.worktree = [chosen.worktree], ""


def _refuse_a_slip(top: argparse.ArgumentParser, flag: str) -> None:
    """Refuse an unknown flag that resembles a known one: it is a typo, and a limit may be lost."""
    known = ["--version", *(option for action in top._actions for option in action.option_strings)]
    near = difflib.get_close_matches(flag, known, n=1, cutoff=0.85)
    if near:
        top.error(f"{flag} is not a flag. Did you mean {near[0]}?")


def parser() -> argparse.ArgumentParser:
    """The parser of `handrail -p`."""
    top = RunParser(
        prog="handrail",
        usage='handrail "PROMPT" [flags]',
        description="Let an agent work on a prompt. Piped input is added to the prompt.",
        allow_abbrev=False,
        formatter_class=partial(argparse.HelpFormatter, width=100),  # each flag makes one, and asks for the real width
    )
    top.add_argument(
        "-p", "--print", metavar="PROMPT", nargs="?", const="", dest="prompt", help="print the answer and exit"
    )
    top.add_argument("words", nargs="*", metavar="PROMPT", help=argparse.SUPPRESS)
    top.add_argument(
        "--output-format", choices=("text", "json", "stream-json"), default="text", help="format of the output"
    )
    top.add_argument(
        "--json", action="store_const", dest="output_format", const="json", help="the same as --output-format json"
    )
    top.add_argument("--input-format", choices=("text", "stream-json"), default="text", help="format of the input")
    _add_session_flags(top)
    _add_program_flags(top)
    top.add_argument("--model", action=StoreValue, default="", help="name of the model; each provider has a default")
    top.add_argument(
        "--fallback-model",
        action=StoreValue,
        type=_names,
        default=(),
        help="models to try when the first is overloaded",
    )
    top.add_argument("--provider", choices=PROVIDERS, default="", help="wire format (default: by the model)")
    top.add_argument(
        "--base-url", action=StoreValue, default="", help="address of the server, for example http://127.0.0.1:8080/v1"
    )
    top.add_argument(
        "--max-turns", type=whole, metavar="N", help="end after N turns (default: 2,000; none for the SDK)"
    )
    top.add_argument("--max-budget-usd", type=amount, metavar="USD", help="end when this many dollars are spent")
    top.add_argument(
        "--early-start", choices=EARLY_STARTS, default="", help="which calls start while the answer arrives"
    )
    top.add_argument("--system-prompt", metavar="TEXT", help="replace the system prompt")
    top.add_argument("--system-prompt-file", action=StoreValue, metavar="FILE", help="the same, from a file")
    top.add_argument("--append-system-prompt", metavar="TEXT", default="", help="add to the system prompt")
    top.add_argument("--append-system-prompt-file", action=StoreValue, metavar="FILE", help="the same, from a file")
    top.add_argument("--tools", type=_names, metavar="A,B", help='only these built-in tools; "" = none')
    add_flags(top)
    top.add_argument("--json-schema", type=_schema, metavar="JSON", help="JSON Schema that the answer must fit")
    top.add_argument("--effort", choices=EFFORTS, help="how hard the model should think")
    top.add_argument("--thinking", choices=("adaptive", "disabled"), help="whether the model thinks first")
    top.add_argument(
        "--max-thinking-tokens", type=number, metavar="N", help="how long the model may think; 0 = not at all"
    )
    top.add_argument("--thinking-display", choices=("summarized", "omitted"), default="", help="how thinking is shown")
    top.add_argument("--task-budget", type=whole, metavar="N", help="tokens that the model is told not to exceed")
    top.add_argument("--record", action=StoreValue, metavar="FILE", help="record the model's answers in a cassette")
    top.add_argument(
        "--replay",
        action=StoreValue,
        metavar="FILE",
        help="replay the answers of a cassette; needs no network and no key",
    )
    top.add_argument(
        "--replay-match",
        choices=MATCHES,
        default="conversation",
        help="which parts of a request must equal the recording",
    )
    top.add_argument("--include-hook-events", action="store_true", help="with stream-json: print hook events")
    top.add_argument(
        "--include-partial-messages",
        action="store_true",
        help="with stream-json: print pieces of the answer as they arrive",
    )
    loud = top.add_mutually_exclusive_group()
    loud.add_argument("--verbose", action="store_true", help="print input, decision and stages of each call")
    loud.add_argument("--quiet", action="store_true", help="print only the answer, on a terminal too")
    top.add_argument(
        "--ask",
        action=argparse.BooleanOptionalAction,
        help="ask about calls that no rule decides (default: on a terminal)",
    )
    top.add_argument(
        "--ask-at",
        action=StoreValue,
        metavar="SOCKET",
        default="",
        help="send questions to the process that answers there",
    )
    top.add_argument(
        "--answer-at", action=StoreValue, metavar="SOCKET", default="", help="answer questions of other processes there"
    )
    top.add_argument("--plain", action="store_true", help="a conversation line by line, without redrawing")
    top.add_argument("--fail-on-denial", action="store_true", help="exit code 3 if a call was refused")
    top.add_argument("--live", action="store_true", help="let questions be answered in handrail view --live, too")
    top.add_argument(
        "--debug", nargs="?", const="all", metavar="WHAT", help="log requests and cache use on standard error"
    )
    top.add_argument("--debug-file", metavar="FILE", action=StoreValue, help="log them to a file instead")
    top.formatter_class = argparse.HelpFormatter
    return top


def _add_session_flags(top: argparse.ArgumentParser) -> None:
    top.add_argument(
        "-c", "--continue", action="store_true", dest="newest", help="continue this folder's newest session"
    )
    top.add_argument(
        "-r",
        "--resume",
        metavar="ID",
        nargs="?",
        const=False,
        action=StoreValue,
        help="continue a session, by id, beginning of an id, or title; on a terminal without an ID: choose one",
    )
    top.add_argument(
        "--fork-session", action="store_true", help="continue in a new session, and leave the old one as it is"
    )
    top.add_argument("--session-id", action=StoreValue, metavar="ID", default="", help="id of the new session")
    top.add_argument(
        "--resume-session-at", action=StoreValue, metavar="UUID", default="", help="continue after this message"
    )
    top.add_argument(
        "--resume-drops-turn", metavar="UUID", default="", help="fail if that drops any prompt but this one"
    )
    top.add_argument("-n", "--name", action=StoreValue, metavar="TITLE", default="", help="title of the session")
    top.add_argument("--no-session-persistence", action="store_true", help="do not save the session")


def _add_program_flags(top: argparse.ArgumentParser) -> None:
    top.add_argument(
        "--mcp-config",
        type=place,
        metavar="FILE|JSON",
        action="extend",
        nargs="+",
        default=[],
        help="MCP servers to use",
    )
    top.add_argument("--strict-mcp-config", action="store_true", help="no MCP servers but those of --mcp-config")
    top.add_argument(
        "--plugin-dir",
        metavar="DIR",
        type=_plugin_folder,
        action="append",
        default=[],
        help="use the plugin in this folder for this run; this trusts its hooks and servers",
    )
    top.add_argument(
        "--worktree",
        metavar="NAME",
        nargs="?",
        const="",
        help="work in a git worktree, on its own branch",
    )
    top.add_argument(
        "--agents", type=_agents, metavar="JSON|FILE", default={}, help="sub-agents by name, as JSON or in a JSON file"
    )
    top.add_argument("--agent", metavar="NAME", action=StoreValue, help="let this agent lead the conversation")
    top.add_argument("--betas", type=_names, metavar="A,B", default=(), help="beta features of the provider")
    top.add_argument(
        "--permission-prompt-tool",
        action=StoreValue,
        metavar="TOOL",
        default="",
        help="ask for permission over stdio, or with an MCP tool",
    )
    top.add_argument(
        "--session-mirror", action="store_true", help="with stream-json: print every record of the session"
    )
    top.add_argument("--replay-user-messages", action="store_true", help="with stream-json: print prompts, too")
    top.add_argument("--disable-slash-commands", action="store_true", help="treat prompts that begin with / as text")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _agents(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text if text.lstrip().startswith("{") else Path(text).read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(
            f"it cannot be read: {error}. Give JSON or a file of it: {AGENTS_FORM}"
        ) from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"it is not a JSON object. Give agents by name: {AGENTS_FORM}")
    for name, entry in value.items():
        if isinstance(problem := definitions.parse_json(name, entry, "--agents"), str):
            raise argparse.ArgumentTypeError(problem.removeprefix("--agents: "))
    return value


def _plugin_folder(text: str) -> Path:
    folder = Path(place(text)).expanduser().absolute()
    if isinstance(problem := plugins.read_plugin(folder), str):
        raise argparse.ArgumentTypeError(f"{problem.removesuffix('.')}. Give the folder of a plugin")
    return folder


def _schema(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"it is not JSON: {error}. Give a JSON Schema: {SCHEMA_FORM}") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"it is not a JSON object. Give a JSON Schema: {SCHEMA_FORM}")
    return value

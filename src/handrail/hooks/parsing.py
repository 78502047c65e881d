"""
Parses the `hooks` section of settings into frozen specs.

    {"PreToolUse": [{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "./check.sh"}]}]}

Parsing is total: every value becomes hooks and named problems. A malformed hook of a deciding event stays in its place
as a hook that cannot run.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Literal

from handrail.errors import HandrailError
from handrail.hooks.events import EVENTS, UNSUPPORTED, HookEvent
from handrail.hooks.matcher import EVERYTHING, Matcher, parse_matcher
from handrail.hooks.specs import (
    BrokenHook,
    CallbackHook,
    CommandHook,
    Function,
    Handler,
    Hook,
    HookCallback,
    HookProblem,
    HookSource,
    HttpHook,
    ParsedHooks,
    short_repr,
)
from handrail.hooks.urls import url_problem
from handrail.named_tuples import NamedTuple
from handrail.permissions.rules import Behaviour, Rule, RuleProblem, RuleSource, parse_rule

SESSION = HookSource("session")
CHANGED = BrokenHook("its folder changed since it was trusted. Look at the change and trust it: handrail trust")
INLINE = "--settings"
"""The file of hooks that are given as text."""


class _MalformedError(HandrailError):
    """An entry that cannot be used."""

    def __init__(self, message: str, kind: Literal["malformed", "unsupported"] = "malformed") -> None:
        super().__init__(message)
        self.kind: Literal["malformed", "unsupported"] = kind


def parse_hooks(section: object, source: HookSource) -> ParsedHooks:
    """
    The hooks and problems of a `hooks` section, for every JSON value.

    Hooks of an untrusted source are only reported. Where a source changed since it was trusted, people count on its
    guards: those become hooks that cannot run.
    """
    reader = _SectionParser(source)
    reader.section(section)
    if source.trust == "changed":
        guards = [hook for hook in reader.hooks if EVENTS[hook.event].decides]
        return ParsedHooks(tuple([replace(hook, handler=CHANGED) for hook in guards]), tuple(reader.problems))
    if source.trust == "untrusted" and reader.hooks:
        events = ", ".join(dict.fromkeys(hook.event for hook in reader.hooks))
        text = f"{len(reader.hooks)} hooks ({events}) do not run, because the folder is not trusted; see handrail trust"
        return ParsedHooks((), (*reader.problems, HookProblem(source, "hooks", text, "untrusted")))
    return ParsedHooks(tuple(reader.hooks), tuple(reader.problems))


def parse_callbacks(callbacks: Mapping[str, Iterable[Function | HookCallback]]) -> list[Hook]:
    """Callback functions by event, as hooks; HandrailError for an event, matcher or condition that is not known."""
    for event, functions in callbacks.items():
        if callable(functions):
            raise HandrailError(f"the callbacks for {event} are {functions!r}. Give a list of functions.")
    return [_callback(event, given) for event, functions in callbacks.items() for given in functions]


def _callback(name: str, given: Function | HookCallback) -> Hook:
    if name not in EVENTS:
        raise HandrailError(f"there is no event {name!r} for a callback. There are {', '.join(EVENTS)}.")
    event, one = EVENTS[name], given if isinstance(given, HookCallback) else HookCallback(given)
    if not callable(one.function):
        raise HandrailError(f"the callback {one.function!r} for {name} is not a function. Give a function of one dict.")
    matcher = parse_matcher(one.matcher)
    if isinstance(matcher, str):
        raise HandrailError(f"the callback {one.function!r} for {name}: {matcher}")
    condition = _condition({"if": one.condition} if one.condition else {}, CALLBACKS)
    seconds = _seconds({} if one.timeout is None else {"timeout": one.timeout}, event.timeout)
    return Hook(
        name,
        CallbackHook(one.function),
        CALLBACKS,
        f"{name} callback",
        matcher,
        condition,
        min(seconds, event.max_timeout),
        blocks_on_failure=one.blocks_on_failure,
    )


CALLBACKS = HookSource("callback")


class _HookGroup(NamedTuple):
    event: HookEvent
    at: str
    matcher: Matcher


def likely_event(name: str) -> HookEvent | None:
    """The event that a misspelt name probably means."""
    plain_names = {event.casefold(): event for event in EVENTS}
    near = get_close_matches("".join(filter(str.isalnum, name)).casefold(), plain_names, n=1, cutoff=0.7)
    return EVENTS[plain_names[near[0]]] if near else None


class _SectionParser:
    """Walks through a section and collects its hooks and problems."""

    def __init__(self, source: HookSource) -> None:
        self.source = source
        self.hooks: list[Hook] = []
        self.problems: list[HookProblem] = []

    def section(self, section: object) -> None:
        if not isinstance(section, Mapping):
            self.problem("hooks", f"is {short_repr(section)}, not an object of events")
            return
        for name, groups in section.items():
            text = str(name)
            if event := EVENTS.get(text[:1].upper() + text[1:]):  # old settings write preToolUse
                self.groups(event, groups)
            elif name in UNSUPPORTED:
                self.problem(f"hooks.{name}", "hooks of this event are not supported and never run", "unsupported")
            else:
                self.unknown_event(text)

    def unknown_event(self, name: str) -> None:
        """Report a name that is no event. What looks like a deciding event becomes a hook that cannot run."""
        at, problem = f"hooks.{name}", "there is no event of this name."
        meant = likely_event(name)
        if name == "hooks":
            self.problem(at, f"{problem} Put the events here, without another 'hooks' around them.", "unsupported")
        elif meant is None:
            self.problem(at, problem, "unsupported")
        elif meant.decides:
            self.broken(_HookGroup(meant, at, EVERYTHING), f"{problem} Did you mean {meant.name}?")
        else:
            self.problem(at, f"{problem} Did you mean {meant.name}?", "unsupported")

    def groups(self, event: HookEvent, groups: object) -> None:
        at = f"hooks.{event.name}"
        if not isinstance(groups, list | tuple):
            self.broken(_HookGroup(event, at, EVERYTHING), f"is {short_repr(groups)}, not a list of groups")
            return
        for number, group in enumerate(groups):
            self.group(event, f"{at}[{number}]", group)

    def group(self, event: HookEvent, at: str, group: object) -> None:
        everything = _HookGroup(event, at, EVERYTHING)
        if not isinstance(group, Mapping):
            self.broken(everything, f"is {short_repr(group)}, not a group with hooks")
            return
        for name in sorted(set(map(str, group)) - {"matcher", "hooks"}):
            self.problem(at, f"{name!r} is not known and was ignored")
        text = group.get("matcher", "")
        matcher = parse_matcher(text) if isinstance(text, str) else f"matcher is {short_repr(text)}, not a text"
        if isinstance(matcher, str) and event.matches:
            self.broken(everything, matcher)
            return
        handlers = group.get("hooks")
        if not isinstance(handlers, list | tuple):
            self.broken(everything, f"hooks is {short_repr(handlers)}, not a list of hooks")
            return
        usable = EVERYTHING if isinstance(matcher, str) or not event.matches else matcher
        for number, handler in enumerate(handlers):
            self.handler(_HookGroup(event, f"{at}.hooks[{number}]", usable), handler)

    def handler(self, group: _HookGroup, value: object) -> None:
        try:
            if not isinstance(value, Mapping):
                raise _MalformedError(f"is {short_repr(value)}, not a hook")
            hook = self.hook(group, value)
        except _MalformedError as error:
            self.broken(group, str(error), error.kind)
            return
        for name in sorted(set(map(str, value)) - KNOWN):
            self.problem(group.at, f"{name!r} is not known and was ignored")
        if value.get("once") and not hook.once:
            self.problem(group.at, "'once' has a meaning in the hooks of a skill only and was ignored")
        if "if" in value and not group.event.of_tool:
            self.problem(group.at, f"never runs: 'if' is for calls of tools, and {group.event.name} is none")
            return
        self.hooks.append(hook)

    def hook(self, group: _HookGroup, value: Mapping[str, Any]) -> Hook:
        event = group.event
        kind = _text(value, "type")
        if kind not in READERS:
            later = kind in ("mcp_tool", "prompt", "agent")
            what = f"hooks of type {kind!r} are not supported" if later else f"there are no hooks of type {kind!r}"
            raise _MalformedError(what, "unsupported")
        rewakes = _flag(value, "asyncRewake")
        return Hook(
            event.name,
            READERS[kind](value),
            self.source,
            group.at,
            group.matcher,
            _condition(value, self.source),
            min(_seconds(value, event.timeout), event.max_timeout),
            _text(value, "statusMessage", ""),
            _flag(value, "once") and self.source.name.startswith("skill:"),
            _choice(value, "onFailure", ("continue", "block")) == "block",
            rewakes or _flag(value, "async"),
            rewakes,
        )

    def broken(self, group: _HookGroup, text: str, kind: Literal["malformed", "unsupported"] = "malformed") -> None:
        """Report a broken part. In a deciding event it becomes a hook that cannot run."""
        self.problem(group.at, text, kind)
        if group.event.decides:
            self.hooks.append(Hook(group.event.name, BrokenHook(text), self.source, group.at, group.matcher))

    def problem(self, at: str, text: str, kind: Literal["malformed", "unsupported"] = "malformed") -> None:
        self.problems.append(HookProblem(self.source, at, text, kind))


def _command(value: Mapping[str, Any]) -> CommandHook:
    args = value.get("args")
    if args is not None and not _texts(args):
        raise _MalformedError(f"args is {short_repr(args)}, not a list of texts")
    command = CommandHook(
        _text(value, "command"),
        None if args is None else tuple(args),
        _choice(value, "shell", ("sh", "bash")),
    )
    if not command.command.strip() or any("\0" in word for word in command.argv):
        raise _MalformedError(f"command is {short_repr(command.command)}, which cannot be run")
    return command


def _http(value: Mapping[str, Any]) -> HttpHook:
    url, headers, variables = _text(value, "url"), value.get("headers", {}), value.get("allowedEnvVars", ())
    if problem := url_problem(url):
        raise _MalformedError(f"url is {short_repr(url)}: {problem}")
    if not isinstance(headers, Mapping) or not all(map(_is_header, headers.items())):
        raise _MalformedError(f"headers is {short_repr(headers)}, not an object of header lines")
    if not _texts(variables):
        raise _MalformedError(f"allowedEnvVars is {short_repr(variables)}, not a list of names")
    return HttpHook(url, tuple(headers.items()), frozenset(variables))


READERS: Mapping[str, Callable[[Mapping[str, Any]], Handler]] = {"command": _command, "http": _http}
KNOWN = frozenset(
    (
        "allowedEnvVars", "args", "async", "asyncRewake", "command", "headers", "if", "onFailure", "once", "shell",
        "statusMessage", "timeout", "type", "url",
    )
)  # fmt: skip


def _is_header(line: tuple[object, object]) -> bool:
    name, value = line
    if not isinstance(name, str) or not isinstance(value, str) or not name.isascii():
        return False
    return bool(name) and name.replace("-", "").replace("_", "").isalnum() and value.isprintable()


def _texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)


def _text(value: Mapping[str, Any], name: str, default: str | None = None) -> str:
    found = value.get(name, default)
    if found is None and name not in value:
        near = get_close_matches(name, value.keys() - KNOWN, n=1, cutoff=0.7)
        raise _MalformedError(f"{name} is missing{f'; there is {near[0]!r}' if near else ''}")
    if not isinstance(found, str):
        raise _MalformedError(f"{name} is {short_repr(found)}, not a text")
    return found


def _flag(value: Mapping[str, Any], name: str) -> bool:
    found = value.get(name, False)
    if not isinstance(found, bool):
        raise _MalformedError(f"{name} is {short_repr(found)}, neither true nor false")
    return found


def _choice(value: Mapping[str, Any], name: str, choices: tuple[str, ...]) -> str:
    found = value.get(name, choices[0])
    if found not in choices:
        raise _MalformedError(f"{name} is {short_repr(found)}, not one of {', '.join(choices)}")
    return str(found)


def _seconds(value: Mapping[str, Any], default: float) -> float:
    found = value.get("timeout", default)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < math.inf:
        raise _MalformedError(f"timeout is {short_repr(found)}, not a number of seconds above 0")
    return float(found)


def _condition(value: Mapping[str, Any], source: HookSource) -> Rule | None:
    text = value.get("if")
    if text is None:
        return None
    if not isinstance(text, str):
        raise _MalformedError(f"if is {short_repr(text)}, not a permission rule")
    of_folder = source.name in ("local", "project") or source.file == INLINE  # which may be one above
    above = bool(source.folder) and of_folder
    rule = parse_rule(text, Behaviour.ASK, RuleSource(source.name, source.file, 0, source.folder, above))
    if isinstance(rule, RuleProblem):
        raise _MalformedError(f"if is {short_repr(text)}: {rule.message}")
    return rule

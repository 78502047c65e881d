"""
Everything in settings and arguments that was meant to forbid and cannot: where it is, and what it may have meant.

    a rule that cannot be parsed, or is about a tool that does not exist     the policy, `permissions.mistakes`
    rules that stand where no rules are looked for: a `deny` at the top      `misplaced_rules`
    a hook whose matcher fits no tool, or whose script is missing            `hook_problems`, `script_notes`

The policy asks for what each of them may have meant until it is corrected.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from handrail.config.json_paths import JsonPath, format_path
from handrail.config.places import SettingsPlaces
from handrail.config.snapshot import Layer, Settings
from handrail.lazy import lazy
from handrail.permissions.mistakes import narrowing_mistakes
from handrail.permissions.rules import Behaviour, Rule, RuleProblem, RuleSource, parse_rule
from handrail.session.settings.caller_names import GUARDING, CallerNames
from handrail.session.settings.load import HookSection, LoadedSettings

if TYPE_CHECKING:
    from handrail.config import unused_keys
    from handrail.hooks import events as hook_events
    from handrail.hooks import matcher_check, scripts, specs
else:  # only projects with settings pay for them, or those with hooks
    unused_keys = lazy("handrail.config.unused_keys")
    hook_events = lazy("handrail.hooks.events")
    matcher_check = lazy("handrail.hooks.matcher_check")
    scripts = lazy("handrail.hooks.scripts")
    specs = lazy("handrail.hooks.specs")

# Keys that hold rules, or look as if they did: letters only, in lower case.


def source_of(layer: Layer, places: SettingsPlaces, line: int = 0) -> RuleSource:
    """Where the rules of a file are written."""
    file = layer.document.file
    above = file.starts_at_folder and file.folder != places.cwd
    return RuleSource(layer.source, file.shown, line, file.folder, above)


def settings_problems(loaded: LoadedSettings, places: SettingsPlaces, names: CallerNames) -> list[RuleProblem]:
    """What is misplaced in settings files, and matchers of hooks that fit no tool."""
    found = [problem for layer in loaded.settings.layers for problem in misplaced_rules(layer, places, names)]
    found += hook_problems(loaded, places, names)
    given = RuleSource("hooks of the program")
    own = [matcher_check.matcher_problem(text, f"{GUARDING} matcher", given, names.tools) for text in names.matchers]
    return found + [problem for problem in own if problem is not None]


# Rules where no rules are looked for


def misplaced_rules(layer: Layer, places: SettingsPlaces, names: CallerNames) -> Iterator[RuleProblem]:
    """The rules of a file that stand in the wrong place; what only forbids needs no trust."""
    for path, wanted, value in unused_keys.misplaced_lists(layer.document.values):
        kind = Behaviour(wanted)
        dotted = "." in str(path[0])  # written like the right place, it is still another key
        place = f'{{"permissions": {{"{kind.value}": ...}}}}' if dotted else f"permissions.{kind.value}"
        message = f"rules of {format_path(path)!r} have no effect; move them to {place}"
        texts = [value] if isinstance(value, str) else value if isinstance(value, list) else [value]
        for at, text in enumerate(texts):
            line = layer.document.line((*path, at) if isinstance(value, list) else path)
            source = source_of(layer, places, line)
            if isinstance(text, str):
                yield _misplaced_rule(parse_rule(text, kind, source), kind, message, names)
            else:
                broad = kind is not Behaviour.ALLOW
                yield RuleProblem(format_path(path), source, message, kind, "misplaced", broad=broad)


def _misplaced_rule(rule: Rule | RuleProblem, kind: Behaviour, message: str, names: CallerNames) -> RuleProblem:
    if isinstance(rule, RuleProblem):
        return replace(rule, message=f"{message}; {rule.message}", kind="misplaced")
    if kind is Behaviour.ALLOW:
        return RuleProblem(rule.text, rule.source, message, kind, "misplaced")
    more = narrowing_mistakes([rule], names.tools)  # it may be wrong in itself, too
    told = "; ".join((message, *(problem.message for problem in more)))
    meant = (replace(rule, behaviour=Behaviour.ASK, broken=told), *(each for problem in more for each in problem.meant))
    broad = any(problem.broad for problem in more)
    return RuleProblem(rule.text, rule.source, told, kind, "misplaced", meant, broad)


# Hooks


def hook_problems(loaded: LoadedSettings, places: SettingsPlaces, names: CallerNames) -> Iterator[RuleProblem]:
    """The matchers and conditions of hooks that fit no tool."""
    for section, layer in _sections(loaded):
        for event, at, group in _groups(section):
            text = group.get("matcher")
            kind = hook_events.EVENTS.get(event)
            if kind is None or not kind.of_tool:
                continue
            path = (*at, "matcher")
            if isinstance(text, str):
                source = source_of(layer, places, layer.document.line(path))
                decides = event == GUARDING
                found = matcher_check.matcher_problem(text, format_path(path), source, names.tools, decides=decides)
                yield from [found] if found else []
            if event == GUARDING:
                yield from _condition_problems(at, group, layer, places, names)


def _condition_problems(
    at: JsonPath, group: Mapping[str, Any], layer: Layer, places: SettingsPlaces, names: CallerNames
) -> Iterator[RuleProblem]:
    """The `if` of hooks that no call can meet. One that cannot be parsed makes its hook a broken one, which asks."""
    handlers = group.get("hooks")
    for number, handler in enumerate(handlers if isinstance(handlers, list) else ()):
        text = handler.get("if") if isinstance(handler, dict) else None
        if isinstance(text, str):
            path = (*at, "hooks", number, "if")
            rule = parse_rule(text, Behaviour.ASK, source_of(layer, places, layer.document.line(path)))
            wrong = narrowing_mistakes([rule], names.tools)
            yield from (replace(each, text=f"{format_path(path)} {text!r}") for each in wrong if each.kind == "never")


def script_notes(loaded: LoadedSettings, places: SettingsPlaces) -> Iterator[str]:
    """The hooks whose program or script does not exist. A guarding one that cannot start asks when it is needed."""
    for section, layer in _sections(loaded):
        for event, at, group in _groups(section):
            handlers = group.get("hooks")
            for number, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                path = (*at, "hooks", number)
                if missing := _missing_script(handler, section, loaded, places):
                    until = "the calls that it is about are asked for" if event == GUARDING else "it does nothing"
                    where = f"{layer.document.file.shown}:{layer.document.line(path)}"
                    what = f"starts {missing!r}, which does not exist. Until it is corrected, {until}."
                    yield f"{where}: {format_path(path)} {what}"


def _missing_script(handler: Any, section: HookSection, loaded: LoadedSettings, places: SettingsPlaces) -> str:
    if not isinstance(handler, dict) or handler.get("type") != "command":
        return ""
    command, args = handler.get("command"), handler.get("args")
    if not isinstance(command, str) or not command.strip():
        return ""
    hook = specs.CommandHook(command, tuple(map(str, args)) if isinstance(args, list) else None)
    source = specs.HookSource(section.source, folder=section.folder)
    env = {**loaded.env, **scripts.project_variables(source, places.cwd)}
    return scripts.missing_script(hook, places.cwd, env)


def _sections(loaded: LoadedSettings) -> Iterator[tuple[HookSection, Layer]]:
    """The hooks that count, each with the layer that they are written in."""
    layers = {(layer.source, layer.document.file.shown): layer for layer in loaded.settings.layers}
    for section in loaded.hooks:
        yield section, layers[section.source, section.file]


def _groups(section: HookSection) -> Iterator[tuple[str, tuple[str | int, ...], Mapping[str, Any]]]:
    """The groups of a section: the event, the path and the group."""
    for name, groups in section.section.items():
        for at, group in enumerate(groups if isinstance(groups, list) else ()):
            if isinstance(group, dict):
                yield name[:1].upper() + name[1:], ("hooks", name, at), group


# As messages say it


def rule_note(problem: RuleProblem, settings: Settings) -> str:
    """What is wrong with a rule, where, and what holds until then: `settings.json:12: permissions.deny[2] is ...`."""
    source = problem.source
    end = f"{problem.message.rstrip('.')}. {problem.consequence}"
    for layer in settings.layers if problem.kind != "misplaced" else ():
        section = layer.values.get("permissions", {}) if layer.document.file.shown == source.file else {}
        for kind in ("deny", "ask", "allow"):
            if problem.text in section.get(kind, ()) and kind == problem.behaviour.value:
                at = section[kind].index(problem.text)
                return f"{source.file}:{source.line}: permissions.{kind}[{at}] is {problem.text!r} - {end}"
    place = f"{source.file}:{source.line}" if source.file and source.line else str(source)
    return f"{place}: {problem.text!r} - {end}"


def notes_of(problems: Iterable[RuleProblem], settings: Settings) -> list[str]:
    """One line for each problem."""
    return list(dict.fromkeys(rule_note(problem, settings) for problem in problems))

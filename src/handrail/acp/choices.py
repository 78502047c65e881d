"""What a person chooses for a session in the editor: the permission mode, the model, the effort."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

from handrail.acp.params import invalid
from handrail.conversation.blocks import Json
from handrail.conversation.request import Effort
from handrail.errors import HandrailError
from handrail.session.session import Session

BYPASS = "bypassPermissions"
MODES = {
    "default": ("Ask", "What may change something is asked about"),
    "acceptEdits": ("Accept edits", "Files of the working folders are changed without a question"),
    "plan": ("Plan", "Nothing is changed before you agree to a plan"),
    BYPASS: ("Bypass permissions", "Only deny rules, ask rules and critical paths still count"),
}
DEFAULT = "default"
"""The effort that the model chooses itself."""
EFFORTS = {each: each for each in (DEFAULT, *get_args(Effort))}


def mode_state(session: Session) -> Json:
    """The mode, and those that can be chosen."""
    modes = [{"id": mode, "name": name, "description": text} for mode, (name, text) in offered_modes(session).items()]
    return {"currentModeId": session.mode, "availableModes": modes}


def offered_modes(session: Session) -> dict[str, tuple[str, str]]:
    """The modes by name: bypassPermissions only where it can be entered, others only where settings or flags chose."""
    start = session.settings.loaded.mode
    modes = {mode: texts for mode, texts in MODES.items() if mode != BYPASS or start.bypass_available}
    for mode in (start.name, session.mode):
        modes.setdefault(mode, (mode, "Chosen by settings or flags"))
    return modes


def set_mode(session: Session, mode: str) -> None:
    """Change the mode; JsonRpcError if it is not offered, or cannot be entered."""
    if mode not in offered_modes(session):
        raise invalid(f"The mode {mode!r} is not offered here. Use one of {', '.join(offered_modes(session))}.")
    try:
        session.set_mode(mode)
    except HandrailError as error:
        raise invalid(str(error)) from error


def config_options(session: Session) -> list[Json]:
    """The mode, the model and the effort, each with its choices."""
    config, asked = session.conversation.config, session.spec.model
    modes = {mode: name for mode, (name, _) in offered_modes(session).items()}
    models = [name for name in (config.model_name, asked.model, *asked.available) if name]
    return [
        _select("mode", "Mode", "mode", session.mode, modes),
        _select("model", "Model", "model", config.model_name, dict(zip(models, models, strict=True))),
        _select("effort", "Effort", "thought_level", config.options.effort or DEFAULT, EFFORTS),
    ]


def _select(name: str, label: str, category: str, value: str, choices: Mapping[str, str]) -> Json:
    options = [{"value": each, "name": shown} for each, shown in choices.items()]
    return {
        "id": name,
        "name": label,
        "category": category,
        "type": "select",
        "currentValue": value,
        "options": options,
    }


async def set_option(session: Session, option: str, value: Any) -> None:
    """Choose a value for an option; JsonRpcError if that cannot be."""
    if not isinstance(value, str):
        raise invalid(f"The value of {option} is {value!r:.100}, not a text.")
    match option:
        case "mode":
            set_mode(session, value)
        case "model":
            await _set_model(session, value)
        case "effort" if value in EFFORTS:
            config = session.conversation.config
            effort: Any = None if value == DEFAULT else value
            session.conversation.config = replace(config, options=replace(config.options, effort=effort))
        case "effort":
            raise invalid(f"There is no effort {value!r}. Use one of {', '.join(EFFORTS)}.")
        case _:
            raise invalid(f"There is no option {option!r}. The options are mode, model and effort.")


async def _set_model(session: Session, name: str) -> None:
    try:
        await session.set_model(name)
    except HandrailError as error:
        raise invalid(str(error)) from error

"""The models that definition files name: full names, and the short ones that people know from elsewhere."""

from collections.abc import Mapping

from handrail.providers.choose import ALIASES, ANTHROPIC_MODELS, ModelOptions

SAME = frozenset(("", "inherit", "default"))
"""They mean the model of the caller."""
FAMILIES = frozenset((*ALIASES, "fable", "best", "opusplan"))
"""Names of one vendor's families. What they stand for depends on the server."""


def is_relative(model: str) -> bool:
    """Whether what a name stands for depends on the server or the caller."""
    return model.lower().removesuffix("[1m]") in SAME | FAMILIES


def alias_note(model: str) -> str:
    """What a person should know of a short name in settings or flags that no server is likely to have."""
    if model.lower() not in FAMILIES or model.lower() in ALIASES:
        return ""
    known = ", ".join(ALIASES)
    return f"the model {model!r} is a short name that handrail does not know, and is sent as it is. Known are {known}."


def model_for(wanted: str, current: str, options: ModelOptions, env: Mapping[str, str]) -> str:
    """
    The model to ask when a command or an agent wants one, and `current` is the caller's.

    A family that is not known for this server (`sonnet` at another vendor's) means the caller's model, and so does a
    model that `availableModels` leaves out.
    """
    name = wanted.strip().removesuffix("[1m]")
    if name.lower() in SAME:
        return current
    full = ALIASES.get(name.lower(), name)
    if options.available and full not in {ALIASES.get(each, each) for each in options.available}:
        return current
    if found := options.overrides.get(name) or options.overrides.get(full):
        return found
    if name.lower() not in FAMILIES:
        return name
    if chosen := env.get(f"ANTHROPIC_DEFAULT_{name.upper()}_MODEL"):
        return chosen
    return ALIASES.get(name.lower(), current) if current.startswith(ANTHROPIC_MODELS) else current

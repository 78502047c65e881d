"""What clients send, as the border checks it: an unknown field is an error, so that none is believed to count."""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from handrail.errors import HttpRefusalError, InputError
from handrail.tools.schema import parse_model

MAX_PROMPT = 100_000

Prompt = Annotated[str, Field(min_length=1, max_length=MAX_PROMPT, pattern=r"\S")]
Name = Annotated[str, Field(max_length=200)]
Path = Annotated[str, Field(max_length=4096)]

Body = TypeVar("Body", bound=BaseModel)


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class RunBody(_Body):
    """A run that is wanted."""

    folder: Name
    prompt: Prompt
    path: Path = ""
    policy: Name = ""
    partial: bool = False


class ResumeBody(_Body):
    """What to say to a run that goes on."""

    prompt: Prompt | None = None


class TriggerBody(_Body):
    """A trigger that is wanted."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    folder: Name
    prompt: Prompt
    path: Path = ""
    policy: Name = ""
    cron: Name = ""
    enabled: bool = True


class TriggerChanges(_Body):
    """What is to change of a trigger."""

    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    folder: Name | None = None
    prompt: Prompt | None = None
    path: Path | None = None
    policy: Name | None = None
    cron: Name | None = None
    enabled: bool | None = None


class TriggerRunBody(_Body):
    """What is said in addition to the prompt of a trigger."""

    prompt: Prompt | None = None


def parse_body(model: type[Body], value: dict[str, Any]) -> Body:
    """The body of a request; HttpRefusalError says what is wrong with it."""
    try:
        return parse_model(model, value)
    except InputError as error:
        raise HttpRefusalError(400, "\n".join(error.problems)) from error

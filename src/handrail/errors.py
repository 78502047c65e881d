"""
Every exception that handrail raises.

    HandrailError
      ToolError          a tool could not do what was asked; the text goes to the model
      InputError         a tool's input does not fit its schema
      ToolDefinitionError  a tool is declared in a way that cannot work
      PairingError       a history in which calls and results do not match
      ProviderSetupError  a model cannot be asked with the settings given
      UrlError           an address or a proxy cannot be used
      TransportError     a request could not be sent, or its answer broke off
      EventTooLargeError  an event of a stream is over its bound
      RunError           a prompt did not come to an answer
      PatternError       a pattern of the settings is not understood
      SettingsError      settings cannot be used, and nothing may run without them
      SandboxError       a command cannot be run in a sandbox
      CassetteError      a recording cannot be written or read
        CassetteMissError  a request that was not recorded
      SessionError       a session cannot be found, read or written
"""


class HandrailError(Exception):
    """Root of all errors that handrail raises on purpose."""


class ToolError(HandrailError):
    """A tool could not do what was asked. The message goes to the model: what happened, the value, the next move."""


class InputError(HandrailError):
    """An input does not fit its schema. Each line names one field and what is wrong with it."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class ToolDefinitionError(HandrailError):
    """A tool is declared in a way that cannot work; raised where it is declared, never during a call."""


class PairingError(HandrailError):
    """A history breaks the rule that every call has exactly one result, in call order, in the next turn."""


class ProviderSetupError(HandrailError):
    """A model cannot be asked with the settings given; the message says what is missing and how to set it."""


class UrlError(HandrailError):
    """An address or a proxy cannot be used; the message shows it without its password."""


class TransportError(HandrailError):
    """A request could not be sent or its answer broke off. `kind` is `connect` (nothing was answered) or `cut`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class EventTooLargeError(HandrailError):
    """A line or event of a stream grew over its bound; nothing of it is kept."""


class RunError(HandrailError):
    """A prompt did not come to an answer. `ended` is the run's last event, which says everything about it."""

    def __init__(self, message: str, ended: object) -> None:
        super().__init__(message)
        self.ended = ended


class PatternError(HandrailError):
    """A pattern of the settings is not understood."""


class SettingsError(HandrailError):
    """Settings cannot be used or written, and going on without them could allow what they forbid."""


class SandboxError(HandrailError):
    """A command cannot be run in a sandbox; the message says why and what would help."""


class CassetteError(HandrailError):
    """A recording cannot be written or read."""


class CassetteMissError(CassetteError):
    """A request that was not recorded; the message shows how it differs from the nearest one that was."""


class SessionError(HandrailError):
    """A session cannot be found, read or written."""

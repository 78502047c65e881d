"""
Every exception that leaves the module that raises it.

An exception that is raised and caught within one module is named `_LikeThisError` and is defined there.

    HandrailError
      ToolError            a tool failed; the message goes to the model
        FileChangedError     a file has changed since it was read
        TaskListError        a change of a task list is not possible
        MissingCapabilityError  the MCP client that called cannot be asked what the tool needs
      InputError           a tool's input does not fit its schema
      ToolDefinitionError  a tool is declared in a way that cannot work
      ToolTimeoutError     a tool took longer than its time limit
      PairingError         a history in which calls and results do not match
      ProviderSetupError   a model cannot be used with the given settings
      UrlError             an address or a proxy cannot be used
      TransportError       a request could not be sent, or its answer broke off
      HttpProtocolError    a request or an answer breaks the rules of HTTP/1.1
      EventTooLargeError   an event of a stream is too large
      RunError             a run ended without an answer
      PatternError         a pattern of the settings is not understood
      UnclearError         a shell command is not understood
      SettingsError        settings cannot be used, and nothing may run without them
      SettingsFileError    a settings file cannot be used at all
        JsonTextError        a text is not strict JSON
      SandboxError         a command cannot be run in a sandbox
      NotExchangedError    a new file cannot take the place of an old one
      UndoError            changes to files cannot be brought back
      CassetteError        a recording cannot be written or read
        CassetteMissError    a request that was not recorded
      SessionError         a session cannot be found, read or written
      McpError             an MCP server cannot be reached, or its answer makes no sense
        AuthorizationNeededError  a person has to sign in at the server first
        TokenRefusedError    an authorization server gives no token
        JsonRpcError         the answer of an MCP server to a request is an error
        HttpStatusError      the status of an MCP server refuses a request
        UnreachableError     an MCP server gave no answer at all
        SessionLostError     an MCP server does not know our session any more
      HttpRefusalError     a request to a server of ours is refused
      ListenError          a server may not or cannot listen where it should
      BatchError           a batch cannot go on: a result cannot be kept, or nothing can be started
      ScheduleError        a schedule is not understood, or cannot be kept
      LspError             a language server cannot be used, or its answer makes no sense
        LspAnswerError       the answer of a language server to a request is an error
      FlagError            the flags of a command cannot be used
      DemoWantedError      a person without a key for a model wants to see the demo
      ClosedError          the other side of a stream has gone
      ControlError         a question over the wire has no answer
"""

import errno


class HandrailError(Exception):
    """Root of all errors that handrail raises on purpose."""


class ToolError(HandrailError):
    """A tool failed. The message goes to the model: what happened, the value, the next move."""


class FileChangedError(ToolError):
    """The file has changed since it was read."""


class TaskListError(ToolError):
    """The change is not possible; the list stays as it is."""


class MissingCapabilityError(ToolError):
    """The MCP client that called a tool does not offer what the tool needs of it."""


class InputError(HandrailError):
    """An input does not fit its schema. Each line names one field and what is wrong with it."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class ToolDefinitionError(HandrailError):
    """A tool is declared in a way that cannot work; raised where it is declared, never during a call."""


class ToolTimeoutError(HandrailError):
    """The time limit of the tool is over; a TimeoutError that the tool itself raised is something else."""


class PairingError(HandrailError):
    """A history breaks the rule that every call has exactly one result, in call order, in the next turn."""


class ProviderSetupError(HandrailError):
    """A model cannot be used with the given settings; the message says what is missing and how to set it."""


class UrlError(HandrailError):
    """An address or a proxy cannot be used; the message shows it without its password."""


class TransportError(HandrailError):
    """A request could not be sent or its answer broke off. `kind` says how far it came.

    `refused`: nothing listens there, on this machine; `connect`: nothing was answered; `cut`: the answer broke off.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class HttpProtocolError(HandrailError):
    """A request or an answer breaks the rules of HTTP/1.1; nothing more can be read from the connection."""


class EventTooLargeError(HandrailError):
    """A line or event of a stream is too large; nothing of it is kept."""


class RunError(HandrailError):
    """A run ended without an answer. `ended` is its last event, which says why."""

    def __init__(self, message: str, ended: object) -> None:
        super().__init__(message)
        self.ended = ended


class PatternError(HandrailError):
    """A pattern of the settings is not understood."""


class UnclearError(HandrailError):
    """A shell command is not understood; `start` and `end` are offsets into `text`."""

    def __init__(self, text: str, start: int = 0, end: int = 0, node: str = "text") -> None:
        super().__init__(text)
        self.text, self.start, self.end, self.node = text, start, end, node


class SettingsError(HandrailError):
    """Settings cannot be used or written, and going on without them could allow what they forbid."""


class SettingsFileError(HandrailError):
    """A settings file cannot be used at all. `offset` and `path` tell the place in it, if there is one."""

    def __init__(self, message: str, offset: int | None = None, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.path = path


class JsonTextError(SettingsFileError):
    """The text is not strict JSON from `offset` on."""

    offset: int


class SandboxError(HandrailError):
    """A command cannot be run in a sandbox; the message says why and what would help."""


class NotExchangedError(HandrailError):
    """A new file cannot take the place of this one."""


class UndoError(HandrailError):
    """A journal cannot be read, or what it holds cannot be brought back."""


class CassetteError(HandrailError):
    """A recording cannot be written or read."""


class CassetteMissError(CassetteError):
    """A request that was not recorded; the message shows how it differs from the nearest one that was."""


class SessionError(HandrailError):
    """A session cannot be found, read or written."""


class McpError(HandrailError):
    """A server cannot be reached, answered with an error, or said what makes no sense."""


class AuthorizationNeededError(McpError):
    """A person has to sign in at the server first."""


class TokenRefusedError(McpError):
    """A token endpoint answered that it gives no token."""


class JsonRpcError(McpError):
    """The answer of a server to a request is an error, with its code and data."""

    def __init__(self, message: str, code: int, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class HttpStatusError(McpError):
    """A server answered with a status that refuses. `body` is JSON, or None."""

    def __init__(self, message: str, status: int, body: object = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = body


class UnreachableError(McpError):
    """A server gave no answer at all."""


class SessionLostError(McpError):
    """The server does not know our session any more: it did nothing, and a new session is needed."""


class HttpRefusalError(HandrailError):
    """A request to a server of ours is refused: the status, and the code and id of the JSON-RPC error in its answer."""

    def __init__(self, status: int, message: str, code: int = -32600, number: int | str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.id = number


class ListenError(HandrailError):
    """A server may not listen at an address, or cannot; the message says which flag or package is missing."""


class BatchError(HandrailError):
    """A batch cannot go on; the results that it has stay."""


class ScheduleError(HandrailError):
    """A schedule is not understood, or cannot be kept."""


class LspError(HandrailError):
    """A language server cannot be started or asked, or said what makes no sense."""


class LspAnswerError(LspError):
    """The answer of a language server to a request is an error, with its code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class FlagError(HandrailError):
    """The flags of a command cannot be used. `usage` shows how the command is written."""

    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message)
        self.usage = usage


class DemoWantedError(HandrailError):
    """The person has no key for a model, and wants to see the demo."""


class ClosedError(HandrailError):
    """The other side of a stream has gone."""


class ControlError(HandrailError):
    """A question over the wire has no answer: it was refused, came too late, or the other side has gone."""


def advice_on(error: OSError) -> str:
    """What to do about a file that cannot be read or written."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return "Make room on the disk, then try again."
        case errno.EROFS:
            return "Nothing can be written there; name another folder."
        case errno.EACCES | errno.EPERM:
            return "Look at its owner and mode."
        case errno.ENOENT | errno.ENOTDIR:
            return "Check that this path is right."
    return "Check that it exists, that you may use it, and that the disk is not full."

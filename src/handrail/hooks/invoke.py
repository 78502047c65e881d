"""Invokes one hook: runs its command, posts to its endpoint or awaits its function."""

import asyncio
import inspect
import json
import re
from collections.abc import Mapping

from pydantic_core import PydanticSerializationError, to_json

from handrail.conversation.logger import get_logger
from handrail.errors import HandrailError, TransportError, UrlError
from handrail.files.private_folder import make_private_folder
from handrail.hooks.environment import HookEnvironment
from handrail.hooks.events import EVENTS
from handrail.hooks.results import (
    NOTHING,
    HookOutput,
    HookResult,
    failure,
    output_from_bytes,
    read_output,
    result_of,
    value_of,
)
from handrail.hooks.scripts import missing_script, other_script, project_variables
from handrail.hooks.specs import BrokenHook, CallbackHook, CommandHook, Hook, HookSource, HttpHook
from handrail.hooks.urls import url_allowed
from handrail.http.client import HttpClient
from handrail.http.transport import HttpRequest
from handrail.lazy import lazy_pattern
from handrail.named_tuples import NamedTuple
from handrail.processes.run import run as run_process
from handrail.processes.trace_context import trace_headers, trace_variables
from handrail.records import record

log = get_logger(__name__)

MAX_BYTES = 1_000_000
SETS_VARIABLES = frozenset(("SessionStart", "CwdChanged"))
PYTHON_NAMES = {"continue_": "continue", "async_": "async"}
VARIABLE = lazy_pattern(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)
RESERVED = frozenset(("connection", "content-length", "content-type", "host", "transfer-encoding"))


@record
class HookInput:
    """The input of an event as JSON, and the folder to run in."""

    event: str
    cwd: str
    data: bytes


class HookReturn(NamedTuple):
    """The result of a hook, and the output that it was read from, if there was one."""

    result: HookResult
    output: HookOutput | None = None


async def invoke(hook: Hook, body: HookInput, where: HookEnvironment) -> HookReturn:
    """What the hook returns. Every error becomes part of it; only cancellation passes through."""
    match hook.handler:
        case BrokenHook(problem):
            return HookReturn(failure(f"cannot run: {problem}"))
        case CommandHook():
            return await _run(hook, hook.handler, body, where)
        case HttpHook():
            return await _post(hook.handler, hook.timeout, body, where)
        case CallbackHook():
            return HookReturn(await _call(hook.handler, hook.timeout, body))


async def _run(hook: Hook, command: CommandHook, body: HookInput, where: HookEnvironment) -> HookReturn:
    seconds, env = hook.timeout, _variables(hook.source, body, where)
    if missing := missing_script(command, body.cwd, env):
        return HookReturn(failure(f"cannot run: there is no {missing}"))
    if other := other_script(command, body.cwd, hook.source):
        where_trusted = f"in {hook.source.folder}. Write $CLAUDE_PROJECT_DIR in front of it"
        return HookReturn(failure(f"cannot run: {other} is another file in {body.cwd} than {where_trusted}"))
    try:
        ended = await run_process(
            command.argv,
            cwd=body.cwd,
            env=env,
            stdin=body.data,
            timeout=seconds,
            max_bytes=MAX_BYTES,
        )
    except OSError as error:
        return HookReturn(failure(f"could not be started: {error.strerror or error}"))
    if ended.timed_out:
        return HookReturn(failure(f"did not answer within {seconds:g} seconds and was stopped"))
    cut, errors = len(ended.stdout) >= MAX_BYTES, ended.stderr.decode("utf-8", "replace")
    output = output_from_bytes(ended.stdout, code=ended.code, errors=errors, cut=cut)
    return HookReturn(result_of(EVENTS[body.event], output), output)


def _variables(source: HookSource, body: HookInput, where: HookEnvironment) -> Mapping[str, str]:
    env = {**where.env, **trace_variables(), **dict(source.variables)}
    env |= project_variables(source, where.project or body.cwd)
    if body.event in SETS_VARIABLES and where.env_file is not None:
        make_private_folder(where.env_file.parent)
        env["CLAUDE_ENV_FILE"] = env["HANDRAIL_ENV_FILE"] = str(where.env_file)
    return env


async def _post(hook: HttpHook, seconds: float, body: HookInput, where: HookEnvironment) -> HookReturn:
    if where.urls is not None and not url_allowed(hook.url, where.urls):
        return HookReturn(failure("may not be called: allowedHttpHookUrls does not list its address"))
    own = (("connection", "close"), ("content-type", "application/json"), *trace_headers().items())
    try:
        async with asyncio.timeout(seconds), HttpClient(where.env, proxy_loopback=False) as client:
            request = HttpRequest(hook.url, (*own, *_fill_headers(hook, where)), body.data)
            answer = await client.fetch(request, max_bytes=MAX_BYTES)
    except TimeoutError:
        return HookReturn(failure(f"did not answer within {seconds:g} seconds"))
    except (TransportError, UrlError) as error:
        return HookReturn(failure(f"could not be asked: {error}"))
    output = output_from_bytes(answer.body, cut=answer.cut)
    if not 200 <= answer.status < 300:
        status = f"it answered with status {answer.status}: {output.text[:200]}"
        return HookReturn(failure(f"could not be asked: {status}"))
    return HookReturn(result_of(EVENTS[body.event], output), output)


def _fill_headers(hook: HttpHook, where: HookEnvironment) -> list[tuple[str, str]]:
    """The headers with variables filled in; one that hook and settings do not both allow is empty."""
    allowed = hook.variables if where.variables is None else hook.variables & frozenset(where.variables)

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return where.env.get(name, "") if name in allowed else ""

    texts = [(name, VARIABLE.sub(value, text)) for name, text in hook.headers if name.lower() not in RESERVED]
    # a variable must not be able to add headers of its own
    return [(name, re.sub(r"[\x00-\x1f\x7f]", "", text).strip()) for name, text in texts]


async def _call(callback: CallbackHook, seconds: float, body: HookInput) -> HookResult:
    try:
        async with asyncio.timeout(seconds):
            value = await _value(callback, body)
        return NOTHING if value is None else read_output(EVENTS[body.event], value)
    except TimeoutError:
        log.warning("hook %s did not answer within %g seconds", callback, seconds)
        return failure(f"did not answer within {seconds:g} seconds")
    except HandrailError as error:
        log.warning("hook %s gave an output that is not valid: %s", callback, error)
        return failure(f"gave an output that is not valid: {error}")
    except Exception as error:  # foreign code may raise anything, and a guard that raised has not said yes
        log.exception("hook %s raised", callback)
        return failure(f"raised {type(error).__name__}: {error}")


async def _value(callback: CallbackHook, body: HookInput) -> dict[str, object] | None:
    given = json.loads(body.data)
    if inspect.iscoroutinefunction(callback.function):
        found = await callback.function(given)
    else:
        found = await asyncio.to_thread(callback.function, given)
        if inspect.isawaitable(found):
            found = await found
    if found is None:
        return None
    try:
        plain = value_of(to_json(found, inf_nan_mode="constants"))
    except (PydanticSerializationError, ValueError) as error:
        raise HandrailError(f"it cannot be written as JSON ({error})") from error
    if not isinstance(plain, dict):
        raise HandrailError(f"it is {plain!r:.60}, not an object")
    return {PYTHON_NAMES.get(str(name), str(name)): value for name, value in plain.items()}

"""
The requests of `handrail serve`. Who may send them is decided before (`serve.guard`). Needs the extra `serve`.

    GET    /v1                       what this client may use
    GET    /v1/runs                  runs, the newest first; ?status= ?folder= ?limit= ?after=
    POST   /v1/runs                  start one
    GET    /v1/runs/ID               one run, with its open questions
    GET    /v1/runs/ID/events        its lines, as they come; ?after=N leaves out the first N
    POST   /v1/runs/ID/answer        an answer to one of its questions
    POST   /v1/runs/ID/stop, /resume
    GET    /v1/triggers              and POST, GET, PATCH, DELETE /v1/triggers/ID, POST /v1/triggers/ID/run
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Match, Route

from handrail import __version__
from handrail.conversation.json_bytes import json_bytes
from handrail.errors import HandrailError, HttpRefusalError, ScheduleError
from handrail.remote.places import find_place
from handrail.remote.records import STATUSES, ServedRunRecord
from handrail.remote.requests import ResumeBody, RunBody, TriggerBody, TriggerChanges, TriggerRunBody, parse_body
from handrail.remote.runs import RunWish
from handrail.remote.service import RunService
from handrail.remote.triggers import MAX_TRIGGERS, Trigger, check_cron, new_trigger_id
from handrail.schedules import clock
from handrail.serve.guard import IDENTITY
from handrail.serve.requests import read_object

HEADERS = {"x-content-type-options": "nosniff", "cache-control": "no-store"}
MAX_LISTED = 200
MAX_DIGITS = 100


def make_app(service: RunService) -> Starlette:
    """The application behind the guard."""
    run, trigger = "/v1/runs/{run}", "/v1/triggers/{trigger}"
    routes = [
        ("GET", "/v1", _about),
        ("GET", "/v1/runs", _list_runs),
        ("POST", "/v1/runs", _create_run),
        ("GET", run, _get_run),
        ("GET", f"{run}/events", _events),
        ("POST", f"{run}/answer", _answer),
        ("POST", f"{run}/stop", _stop),
        ("POST", f"{run}/resume", _resume),
        ("GET", "/v1/triggers", _list_triggers),
        ("POST", "/v1/triggers", _create_trigger),
        ("GET", trigger, _get_trigger),
        ("PATCH", trigger, _update_trigger),
        ("DELETE", trigger, _remove_trigger),
        ("POST", f"{trigger}/run", _run_trigger),
    ]
    return Starlette(
        routes=[Route(path, partial(work, service), methods=[method]) for method, path, work in routes],
        exception_handlers={HandrailError: _problem, HTTPException: _http_problem, Exception: _crash},
    )


def _reply(value: Any, status: int = 200, headers: Mapping[str, str] = HEADERS) -> Response:
    return Response(json_bytes(value), status, headers, "application/json")


def error_json(message: str) -> dict[str, Any]:
    """What a client gets for an error of any kind."""
    return {"error": message}


async def _problem(_request: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, HttpRefusalError) else 400 if isinstance(error, ScheduleError) else 409
    return _reply(error_json(str(error)), status)


async def _http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = HEADERS
    if error.status_code == 405:  # the error itself knows only the first route of the path
        routes = [each for each in request.app.routes if each.matches(request.scope)[0] is not Match.NONE]
        headers = HEADERS | {"allow": ", ".join(sorted({method for each in routes for method in each.methods}))}
    return _reply(error_json(f"{error.detail}. docs/serve.md lists the requests."), error.status_code, headers)


async def _crash(request: Request, error: Exception) -> Response:
    what = f"{request.method} {request.url.path} failed in the server: {type(error).__name__}."
    return _reply(error_json(f"{what} The standard error of the server says more."), 500)


def _client(request: Request) -> str:
    name: str = request.scope[IDENTITY]
    return name


def _origin(request: Request, **more: str) -> Mapping[str, str]:
    address = request.client.host if request.client else ""
    return {"client": _client(request), "address": address, **more}


async def _about(service: RunService, request: Request) -> Response:
    client = service.config.clients[_client(request)]
    folders = {name: list(service.config.folders[name].policies) for name in sorted(client.folders)}
    return _reply({"handrail": __version__, "client": client.name, "answers": client.answers, "folders": folders})


# Runs


def _run_json(service: RunService, run: ServedRunRecord) -> dict[str, Any]:
    return {**run.as_json(), "questions": service.runs.questions(run.id)}


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= MAX_DIGITS


async def _list_runs(service: RunService, request: Request) -> Response:
    asked = request.query_params
    limit, status, after = asked.get("limit", "50"), asked.get("status", ""), asked.get("after", "")
    if not _is_number(limit) or status not in ("", *STATUSES):
        raise HttpRefusalError(400, f"limit is a whole number, status one of {', '.join(STATUSES)}.")
    found = service.runs.all(_client(request))
    if after:
        found = found[1 + next((at for at, run in enumerate(found) if run.id == after), len(found)) :]
    fitting = [run for run in found if status in ("", run.status) and asked.get("folder", run.folder) == run.folder]
    page = fitting[: min(int(limit), MAX_LISTED)]
    return _reply({"runs": [_run_json(service, run) for run in page], "more": len(fitting) > len(page)})


async def _create_run(service: RunService, request: Request) -> Response:
    body = parse_body(RunBody, await read_object(request))
    wish = RunWish(
        body.folder, body.prompt, _client(request), _origin(request), body.path, body.policy, partial=body.partial
    )
    return _reply(_run_json(service, service.runs.create(wish)), 201)


async def _get_run(service: RunService, request: Request) -> Response:
    return _reply(_run_json(service, service.runs.find(_client(request), request.path_params["run"])))


async def _events(service: RunService, request: Request) -> Response:
    run = service.runs.find(_client(request), request.path_params["run"])
    after = request.query_params.get("after", "0")
    if not _is_number(after):
        raise HttpRefusalError(400, "after is the number of lines that you have.")
    headers = {**HEADERS, "x-accel-buffering": "no"}
    return StreamingResponse(service.runs.follow(run.id, int(after)), 200, headers, "application/x-ndjson")


async def _answer(service: RunService, request: Request) -> Response:
    service.runs.answer(_client(request), request.path_params["run"], await read_object(request))
    return _reply({"answered": True})


async def _stop(service: RunService, request: Request) -> Response:
    return _reply(_run_json(service, service.runs.stop(_client(request), request.path_params["run"])))


async def _resume(service: RunService, request: Request) -> Response:
    body = parse_body(ResumeBody, await read_object(request, empty=True))
    run = service.runs.resume(_origin(request), request.path_params["run"], body.prompt)
    return _reply(_run_json(service, run))


# Triggers


def _trigger(service: RunService, request: Request) -> Trigger:
    wanted = request.path_params["trigger"]
    found = service.triggers.find(wanted)
    if found is None or found.folder not in service.config.clients[_client(request)].folders:
        raise HttpRefusalError(404, f"There is no trigger {wanted!r}.")
    return found


def _with_runs(service: RunService, request: Request, trigger: Trigger) -> dict[str, Any]:
    runs = [run for run in service.runs.all(_client(request)) if run.origin.get("trigger") == trigger.id]
    return {
        **trigger.as_json(),
        "runs": [{"id": run.id, "status": run.status, "created": run.created} for run in runs[:10]],
    }


def _check_trigger(service: RunService, trigger: Trigger) -> Trigger:
    """The trigger, if its client may start it; HttpRefusalError or ScheduleError says why not."""
    find_place(service.config, trigger.client, trigger.folder, trigger.path, trigger.policy)
    return replace(trigger, cron=check_cron(trigger.cron))


async def _list_triggers(service: RunService, request: Request) -> Response:
    allowed = service.config.clients[_client(request)].folders
    found = [each for each in service.triggers.all() if each.folder in allowed]
    return _reply({"triggers": [_with_runs(service, request, each) for each in found]})


async def _create_trigger(service: RunService, request: Request) -> Response:
    body = parse_body(TriggerBody, await read_object(request))
    now = clock.now()
    made = Trigger(new_trigger_id(), client=_client(request), created=now, since=now, **body.model_dump())
    service.triggers.keep(made := _check_trigger(service, made), service.config.share(MAX_TRIGGERS))
    return _reply(_with_runs(service, request, made), 201)


async def _get_trigger(service: RunService, request: Request) -> Response:
    return _reply(_with_runs(service, request, _trigger(service, request)))


async def _update_trigger(service: RunService, request: Request) -> Response:
    changes = parse_body(TriggerChanges, await read_object(request)).model_dump(exclude_none=True)
    before = _trigger(service, request)  # after the body, which may come slowly: it may be gone by then
    # the clock starts again, so that what was due before the change does not come now
    made = _check_trigger(service, replace(before, **changes, client=_client(request), since=clock.now()))
    service.triggers.keep(made, service.config.share(MAX_TRIGGERS))
    return _reply(_with_runs(service, request, made))


async def _remove_trigger(service: RunService, request: Request) -> Response:
    found = _trigger(service, request)
    service.triggers.remove(found.id)
    return _reply({"removed": found.id})


async def _run_trigger(service: RunService, request: Request) -> Response:
    more = parse_body(TriggerRunBody, await read_object(request, empty=True)).prompt
    found = _trigger(service, request)
    prompt = f"{found.prompt}\n\n{more}" if more else found.prompt
    origin = _origin(request, trigger=found.id)
    wish = RunWish(found.folder, prompt, _client(request), origin, found.path, found.policy)
    return _reply(_run_json(service, service.runs.create(wish)), 201)

"""RemoteTrigger: keep and start prompts on another machine."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal
from urllib.parse import quote

from handrail.builtin.remote_trigger.server import ask_server
from handrail.builtin.services import ToolServices
from handrail.builtin.support.foreign_text import mark_foreign
from handrail.errors import ToolError
from handrail.tools.access import EXCLUSIVE, Access
from handrail.tools.cards import Card
from handrail.tools.context import Progress, RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.permission import NO_OPINION, Check, Refuse, Verdict
from handrail.tools.plain_input import Field, PlainInput
from handrail.tools.remote import RemoteServer
from handrail.tools.tool import Tool
from handrail.tools.wording import did_you_mean

READS = frozenset({"list", "get"})
TRIGGER = re.compile(r"t[0-9a-f]{10}")
RUN = re.compile(r"[0-9a-f-]{36}")
MAX_LINE = 200


class RemoteTriggerInput(PlainInput):
    action: Literal["list", "get", "create", "update", "run"] = Field(description="What to do.")
    trigger_id: str = Field(default="", max_length=100, description="The trigger; for get also the id of a run.")
    body: dict[str, Any] | None = Field(default=None, description="For create, update and run: the fields.")
    server: str = Field(default="", max_length=100, description="The name of the server, if there are several.")


class RemoteTrigger(Tool[RemoteTriggerInput]):
    name = "RemoteTrigger"
    search_hint = "server other machine start run elsewhere cloud prompt"
    input_model = RemoteTriggerInput
    subject = "trigger_id"
    should_defer = True
    interrupt = "cancel"

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def is_read_only(self, args: RemoteTriggerInput) -> bool:
        return args.action in READS

    def is_concurrency_safe(self, args: RemoteTriggerInput) -> bool:
        return args.action in READS

    def access(self, args: RemoteTriggerInput, run: RunContext) -> Access:
        server = self._find(args.server)
        if isinstance(server, str):
            return EXCLUSIVE
        return Access.of(reaches=server.url, width="shared" if args.action in READS else "exclusive")

    def summary(self, args: RemoteTriggerInput) -> str:
        about = args.trigger_id or str((args.body or {}).get("name", ""))[:80]
        return f"RemoteTrigger({' '.join(filter(None, (args.action, about)))})"

    def classifier_text(self, args: RemoteTriggerInput) -> str:
        return f"{args.action} {args.server} {args.trigger_id} {json.dumps(args.body) if args.body else ''}".strip()

    async def validate(self, args: RemoteTriggerInput, ctx: ToolContext) -> Refuse | None:
        if isinstance(server := self._find(args.server), str):
            return Refuse(server)
        if args.action in ("get", "update", "run") and not args.trigger_id:
            return Refuse(f"{args.action} is about one trigger. Give its trigger_id, which list shows.")
        if args.action in ("create", "update") and not args.body:
            return Refuse(f"{args.action} needs a body with the fields of the trigger.")
        return None

    async def check_permission(self, args: RemoteTriggerInput, ctx: ToolContext) -> Check:
        if args.action in READS:
            return NO_OPINION
        what = {"create": "it keeps a prompt", "update": "it changes what is kept", "run": "it starts a run"}
        return Check(Verdict.ASK, f"{what[args.action]} on another machine", despite_rules=True)

    async def call(self, args: RemoteTriggerInput, ctx: ToolContext) -> Output:
        server = self._find(args.server)
        if isinstance(server, str):
            raise ToolError(server)
        ctx.progress(Progress(f"asking {server.name}"))
        found = await self._ask(server, args)
        text = "\n".join(lines_of(args.action, found))
        marked = mark_foreign(text, f"the server {server.name}")
        run_id = str(found.get("id"))  # in our own words, so it must be nothing but an id
        is_known = args.action == "run" and RUN.fullmatch(run_id)
        note = f"\n[RemoteTrigger get with {run_id} says how the run stands.]" if is_known else ""
        card = Card(title=f"{server.name}: {args.action}", detail=args.trigger_id, body=text)
        return Output(text=f"{marked}{note}", data={**found, "server": server.name, "action": args.action}, card=card)

    async def _ask(self, server: RemoteServer, args: RemoteTriggerInput) -> dict[str, Any]:
        env, place = self._services.env, f"/v1/triggers/{quote(args.trigger_id, safe='')}"
        match args.action:
            case "list":
                about = await ask_server(server, env, "GET", "/v1")
                return {**await ask_server(server, env, "GET", "/v1/triggers"), "folders": about.get("folders")}
            case "get" if not TRIGGER.fullmatch(args.trigger_id):
                return await ask_server(server, env, "GET", f"/v1/runs/{quote(args.trigger_id, safe='')}")
            case "get":
                return await ask_server(server, env, "GET", place)
            case "create":
                return await ask_server(server, env, "POST", "/v1/triggers", args.body)
            case "update":
                return await ask_server(server, env, "PATCH", place, args.body)
            case "run":
                return await ask_server(server, env, "POST", f"{place}/run", args.body)

    def _find(self, name: str) -> RemoteServer | str:
        """The server that is meant, or what is wrong."""
        known = self._services.remote_servers
        if not known:
            return "There is no server in this session. The user can name one with the setting remoteServers."
        if not name and len(known) > 1:
            return f"There are several servers: {', '.join(known)}. Give one as server."
        if name and name not in known:
            return f"There is no server {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}."
        return known[name] if name else next(iter(known.values()))


def lines_of(action: str, found: Mapping[str, Any]) -> Iterator[str]:
    """What a server said, in lines for the model."""
    match found:
        case {"triggers": list(triggers)}:
            yield f"folders and policies: {json.dumps(found.get('folders'))}"
            yield from map(_trigger_line, _objects(triggers))
            if not triggers:
                yield "There are no triggers."
        case {"status": status, "id": run_id}:
            yield f"run {run_id} is {status}" + (f" ({found['problem']})" if found.get("problem") else "")
            if (result := found.get("result")) and isinstance(result, Mapping):
                yield f"{'It failed' if result.get('is_error') else 'Its answer'}: {result.get('result')}"
            for question in _objects(found.get("questions")):
                yield f"It waits for an answer of a person there: {question.get('title')} {question.get('reason')}"
        case _:
            yield _trigger_line(found)
            if action == "get":
                yield f"prompt: {found.get('prompt')}"


def _trigger_line(trigger: Mapping[str, Any]) -> str:
    clock = f", by the clock {trigger['cron']!r}" if trigger.get("cron") else ""
    off = "" if trigger.get("enabled") else " (switched off)"
    runs = [f"{run.get('id')} is {run.get('status')}" for run in _objects(trigger.get("runs"))][:3]
    head = f"{trigger.get('id')} {trigger.get('name')!r}{off} in {trigger.get('folder')}{clock}"
    return f"{head[:MAX_LINE]}; runs: {', '.join(runs) or 'none'}"


def _objects(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list; a server may send anything."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []

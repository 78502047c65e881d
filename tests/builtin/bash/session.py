"""A session in a folder of its own: commands go through the executor and a gate, as a model's do."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from handrail.builtin.services import ToolServices
from handrail.builtin.support.background_tasks import BackgroundTasks, tasks_of
from handrail.conversation.blocks import ToolUse
from handrail.dispatch.approval.decide import conditions_left_to_tools
from handrail.dispatch.approval.gate import PolicyGate
from handrail.dispatch.approval.live import LivePolicy
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.gate import CarefulGate, Gate, Rails
from handrail.dispatch.results import ResultStore
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, Rule, RuleSource, parse_rule
from handrail.session.tools import make_catalog
from handrail.tools.context import Progress, RunContext
from handrail.tools.events import CallProgress
from handrail.tools.outcome import Outcome
from handrail.tools.pool import Deferral

TRUSTING = CarefulGate(trusting=True)


class Session:
    """The tools of one session; the working folder is kept from call to call."""

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None, **services: Any) -> None:
        base = Path(os.path.realpath(folder))
        self.project, self.home, self.state = base / "project", base / "home", base / "state"
        self.project.mkdir(exist_ok=True)
        self.home.mkdir(exist_ok=True)
        self.services = ToolServices(
            env={"PATH": os.environ["PATH"], "HOME": str(self.home), **(env or {})},
            home=str(self.home),
            working_dirs=lambda: (str(self.project),),
            state=self.state,
            **services,
        )
        self.run = RunContext(self.project)
        self.progress: list[Progress] = []
        self._base = base
        self._catalog = make_catalog(
            variables=self.services.env, services=lambda: self.services, deferral=Deferral(mode="off")
        )
        self._count = 0

    @property
    def tasks(self) -> BackgroundTasks:
        return tasks_of(self.services)

    def rules(self, mode: str = "default", allow: Sequence[str] = ()) -> Gate:
        """The gate of the project, with nobody to ask."""
        parsed = [parse_rule(text, Behaviour.ALLOW, RuleSource("user")) for text in allow]
        own = [rule for rule in parsed if isinstance(rule, Rule)]
        policy = replace(Policy.empty(str(self.project), str(self.home)), mode=mode).with_rules(own)
        return PolicyGate(LivePolicy(lambda: policy), conditions=conditions_left_to_tools)

    async def calls(self, *inputs: tuple[str, dict[str, Any]], gate: Gate = TRUSTING) -> list[Outcome]:
        """The outcomes of one answer's calls."""
        store = ResultStore(self._base / "results")
        async with ToolExecutor(self._catalog.pool, self.run, store, rails=Rails(gate)) as executor:
            events = executor.events
            for name, given in inputs:
                self._count += 1
                executor.add(ToolUse(f"call-{self._count}", name, given))
            outcomes = [outcome async for outcome in executor.rest()]
            self.run = executor.run
        self.progress += [event.progress async for event in events if isinstance(event, CallProgress)]
        return outcomes

    async def use(self, name: str, given: dict[str, Any], gate: Gate = TRUSTING) -> Outcome:
        (outcome,) = await self.calls((name, given), gate=gate)
        return outcome

    async def bash(self, command: str, gate: Gate = TRUSTING, **given: Any) -> Outcome:
        return await self.use("Bash", {"command": command, **given}, gate)

    async def text(self, command: str, **given: Any) -> str:
        """What the model gets."""
        return (await self.bash(command, **given)).result.text

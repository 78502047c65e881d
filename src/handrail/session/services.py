"""What the tools of a session are given. Loaded with the first tool."""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.builtin.services import ToolServices, usual_quota
from handrail.config.execution import features_of, most_searches, web_options
from handrail.config.remote_servers import remote_servers
from handrail.files.leftovers import remove_leftovers
from handrail.files.undo import Undo
from handrail.lazy import lazy
from handrail.session.sandbox import SessionSandbox
from handrail.session.settings.policy import hidden_files
from handrail.session.settings.session_settings import SessionSettings
from handrail.session.state_folder import UNDO, run_folder_name, state_folder

if TYPE_CHECKING:
    from handrail.agents import pending_worktrees
else:
    pending_worktrees = lazy("handrail.agents.pending_worktrees")  # only after a kill


def default_services(variables: Mapping[str, str], cwd: Path | None = None, session: str = "") -> ToolServices:
    """The default services of tools: the working folder, and a state folder of this run alone."""
    folder = os.path.realpath(cwd or Path.cwd())
    home = os.path.realpath(variables.get("HOME") or Path.home())
    session = session or run_folder_name()
    state = state_folder(variables)
    undo = Undo(state / UNDO / session, folder)
    return ToolServices(
        env=variables, home=home, working_dirs=lambda: (folder,), state=state / "runs" / session, undo=undo
    )


def remove_orphans(state: Path, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Remove the worktrees that killed runs left before they were written down; what became of each."""
    if not (state / "worktrees" / "pending").is_dir():  # as a rule
        return ()
    return pending_worktrees.remove_orphans(state, variables)


def tool_services(settings: SessionSettings, session_id: str = "", state: Path | None = None) -> ToolServices:
    """
    What tools are given: the variables of the settings, and the working folders as they are at the time.

    `state`: the folder for their files in place of the usual one.
    """
    env = settings.loaded.env
    kept = state_folder(env)
    remove_leftovers(kept / UNDO)
    remove_orphans(kept, env)
    services = default_services(env, Path(settings.places.cwd), session_id)
    if state is not None:
        services = replace(services, state=state)
    return replace(
        services,
        home=settings.places.home,
        working_dirs=settings.folders,
        plan=_plan_file(settings, services),
        hidden_files=hidden_files(settings.in_force),
        sandbox=SessionSandbox(settings, services.state),
        background="background" in features_of(settings.loaded.settings, settings.loaded.env),
        output_quota=partial(_output_quota, settings),
        readable_services=partial(_readable_services, settings),
        web=web_options(settings.loaded.settings),
        max_searches=most_searches(settings.loaded.settings, settings.loaded.env),
        remote_servers=remote_servers(settings.loaded.settings, settings.loaded.env).servers,
    )


def _plan_file(settings: SessionSettings, services: ToolServices) -> Path | None:
    """The plan file in the folder that the settings name; None if they name none."""
    folder = settings.loaded.settings.get("plansDirectory")
    return Path(settings.places.cwd, os.path.expanduser(folder), f"{services.state.name}.md") if folder else None  # noqa: PTH111


def _output_quota(settings: SessionSettings) -> int:
    """How many bytes of output a command may write now."""
    quota: int | None = settings.loaded.settings.get("commandOutputQuota")
    return usual_quota() if quota is None else quota


def _readable_services(settings: SessionSettings) -> tuple[str, ...]:
    """The services that commands may ask now. Files of a project do not count: the sign-in is the user's."""
    loaded = settings.loaded.settings
    sources = {"policy"} if loaded.get_managed("allowManagedPermissionRulesOnly") else {"policy", "flag", "user"}
    layers = [layer for layer in loaded.layers if layer.source in sources]
    return tuple(name for layer in layers for name in layer.values.get("permissions", {}).get("readableServices", ()))

"""Turns the flags of `handrail -p` into the specification of a session."""

import argparse
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from handrail.cli.mcp_config_flag import read_servers
from handrail.cli.permission_flags import settings_flags, warn
from handrail.conversation.request import ThinkingMode, ThinkingOptions
from handrail.errors import HandrailError
from handrail.loop.limits import Limits
from handrail.loop.run_config import RequestOptions
from handrail.providers.choose import ModelOptions
from handrail.session.spec import PromptOptions, SessionSpec, ToolOptions
from handrail.session.tools import builtin_names
from handrail.session.transcript import TranscriptOptions
from handrail.tools.pool import NO_DEFERRAL
from handrail.tools.wording import did_you_mean

MAX_TURNS = 2_000
TASK_BUDGETS = "task-budgets-2026-03-13"
ENTRYPOINT = "CLAUDE_CODE_ENTRYPOINT"
"""The variable in which the SDK says that it drives us."""
THINKING: dict[str | None, ThinkingMode] = {"adaptive": "adaptive", "disabled": "off", None: "default"}


def session_spec(chosen: argparse.Namespace) -> SessionSpec:
    """The session that the flags ask for; HandrailError if a file that a flag names cannot be read."""
    return SessionSpec(
        cwd=Path.cwd(),
        model=ModelOptions(chosen.provider, chosen.model, chosen.base_url, "", chosen.fallback_model),
        request=_request_options(chosen),
        limits=Limits(turns=chosen.max_turns or _default_turns(chosen), dollars=chosen.max_budget_usd),
        prompt=_prompt_options(chosen),
        tools=_tool_options(chosen),
        flags=settings_flags(chosen),
        transcript=_transcript_options(chosen),
        output=chosen.json_schema,
        agent=chosen.agent or "",
        worktree=chosen.worktree,
        slash_commands=not chosen.disable_slash_commands,
        early_start=chosen.early_start,
        live=chosen.live,
        debug=bool(chosen.debug or chosen.debug_file),
        verbose=chosen.verbose,
        record=chosen.record and Path(chosen.record),
        replay=chosen.replay and Path(chosen.replay),
        replay_match=chosen.replay_match,
    )


def _default_turns(chosen: argparse.Namespace) -> int | None:
    """A run that nothing else ends does not go on for ever; a program that drives one sets its own limits."""
    return None if chosen.input_format == "stream-json" else MAX_TURNS


def _request_options(chosen: argparse.Namespace) -> RequestOptions:
    thinking = ThinkingOptions(THINKING[chosen.thinking], chosen.max_thinking_tokens, chosen.thinking_display)
    return RequestOptions(
        thinking=ThinkingOptions("off") if chosen.max_thinking_tokens == 0 else thinking,
        effort=chosen.effort,
        betas=(*chosen.betas, *((TASK_BUDGETS,) if chosen.task_budget else ())),
        task_budget=chosen.task_budget,
    )


def _prompt_options(chosen: argparse.Namespace) -> PromptOptions:
    file = chosen.append_system_prompt_file
    added = (chosen.append_system_prompt, read_text(file) if file else "")
    return PromptOptions(
        system=chosen.system_prompt if chosen.system_prompt_file is None else read_text(chosen.system_prompt_file),
        append="\n\n".join(part for part in added if part),
    )


def warn_of_unknown_tools(named: Collection[str], every: Collection[str], flag: str = "--tools") -> None:
    """Say which names of --tools, or another flag, are no tools of a run."""
    for name in sorted({*named} - {*every}):
        warn(f"{flag}: there is no built-in tool {name!r} here, so it is left out.{did_you_mean(name, every)}")


def _tool_options(chosen: argparse.Namespace) -> ToolOptions:
    every = builtin_names()
    named = None if chosen.tools is None or chosen.tools == ("default",) else chosen.tools
    warn_of_unknown_tools(named or (), every)
    servers: dict[str, Any] = {}
    for config in chosen.mcp_config:
        servers |= read_servers(config, Path.cwd())
    return ToolOptions(
        builtin=None if named is None else tuple(name for name in named if name in every),
        # named tools are sent in full, without a tool search; servers may still bring many
        deferral=None if named is None or servers else NO_DEFERRAL,
        mcp_servers=servers,
        strict_mcp=chosen.strict_mcp_config,
        agents=chosen.agents,
        plugins=tuple(chosen.plugin_dir),
    )


def _transcript_options(chosen: argparse.Namespace) -> TranscriptOptions:
    return TranscriptOptions(
        keep=not chosen.no_session_persistence and not chosen.replay,
        session_id=chosen.session_id,
        resume=chosen.resume or "",
        newest=chosen.newest,
        fork=chosen.fork_session,
        upto=chosen.resume_session_at,
        dropped=chosen.resume_drops_turn,
        name=chosen.name,
        mirrored=chosen.session_mirror,
        copied=_is_driven_by_sdk(chosen) and not chosen.session_mirror,
    )


def _is_driven_by_sdk(chosen: argparse.Namespace) -> bool:
    return chosen.input_format == "stream-json" and os.environ.get(ENTRYPOINT, "").startswith("sdk")


def read_text(file: str) -> str:
    """The text of a file that a flag names; HandrailError if it cannot be read."""
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise HandrailError(f"{file!r} cannot be read: {error}. Give a text file in UTF-8.") from error

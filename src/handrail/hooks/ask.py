"""Chooses the hooks that match an event, asks them side by side, and folds their results into one."""

import asyncio
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from handrail.conversation.blocks import Json
from handrail.hooks.condition import holds, takes_time
from handrail.hooks.environment import HookEnvironment
from handrail.hooks.events import EVENTS
from handrail.hooks.fold import fold_results, opinion_of, weigh
from handrail.hooks.invoke import HookInput, HookReturn, invoke
from handrail.hooks.news import HookNews, OnNews
from handrail.hooks.results import BLOCKED, NOTHING, HookOutput, HookResult
from handrail.hooks.specs import Hook
from handrail.hooks.texts import bound_text
from handrail.tools.context import RunContext
from handrail.tools.permission import Deny
from handrail.tools.request import CallRequest

__all__ = ["BLOCKED", "NOTHING", "HookInput", "ask_hook", "ask_hooks", "matching_hooks", "opinion_of"]

MAX_TITLE = 200
AT_ONCE = 64
"""How many hooks of one event run side by side, because each takes a process and pipes."""


async def matching_hooks(
    hooks: Iterable[Hook],
    fields: Json,
    run: RunContext,
    request: CallRequest | None,
    *,
    home: str,
    done: set[Hook],
) -> list[Hook]:
    """The hooks that match, in order; of identical ones only the strictest. `done` have run, and run only once."""
    found: dict[object, Hook] = {}
    for hook in hooks:
        if not hook.source.is_for(run.agent):
            continue
        subject = EVENTS[hook.event].matches
        if not hook.matcher.matches(str(fields.get(subject, "")) if subject else ""):
            continue
        if hook.condition is not None and request is not None:
            test = partial(holds, hook.condition, request, str(run.cwd), home)
            if not (await asyncio.to_thread(test) if takes_time(request) else test()):
                continue
        if hook.once and hook in done:
            continue
        key = (hook.handler, hook.source.own, hook.background)
        known = found.get(key)
        found[key] = hook if known is None or _severity(hook) > _severity(known) else known
        if hook.once:
            done.add(hook)
    return list(found.values())


async def ask_hooks(
    hooks: Sequence[Hook], body: HookInput, env: HookEnvironment, on_news: OnNews, *, strict: bool
) -> HookResult:
    """The folded result of hooks that are asked side by side."""
    if len(hooks) == 1:
        return (await ask_hook(hooks[0], body, env, on_news, strict=strict)).result
    places = asyncio.Semaphore(AT_ONCE)

    async def ask_in_turn(hook: Hook) -> HookResult:
        async with places:
            return (await ask_hook(hook, body, env, on_news, strict=strict)).result

    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(ask_in_turn(hook)) for hook in hooks]
    return fold_results([task.result() for task in asked])


async def ask_hook(hook: Hook, body: HookInput, env: HookEnvironment, on_news: OnNews, *, strict: bool) -> HookReturn:
    """What one hook returns, within bounds; a failure weighs as its event and family say."""
    news = HookNews(hook.status, None, "started", hook.event, hook.name, os.urandom(8).hex())
    on_news(news)
    try:
        asked = await invoke(hook, body, env)
    except asyncio.CancelledError:
        on_news(replace(news, stage="response", outcome="cancelled"))
        raise
    result = _bound_texts(weigh(hook, asked.result, strict=strict), env.folder)
    on_news(_response(news, result, asked.output))
    return HookReturn(result, asked.output)


def _severity(hook: Hook) -> tuple[bool, bool]:
    return hook.blocks_on_failure, hook.source.family == ".handrail"


def _response(news: HookNews, result: HookResult, output: HookOutput | None) -> HookNews:
    return replace(
        news,
        stage="response",
        stdout=bound_text(output.text, None) if output else "",
        stderr=bound_text(output.errors, None) if output else result.problem,
        exit_code=output.code if output else None,
        outcome="error" if result.problem or (output and output.code) else "success",
    )


def _bound_texts(result: HookResult, folder: Path | None) -> HookResult:
    """The result with all texts within bounds."""
    permission = result.permission
    if isinstance(permission, Deny):
        permission = replace(permission, message=bound_text(permission.message, folder))
    return replace(
        result,
        reason=bound_text(result.reason, folder),
        block=None if result.block is None else bound_text(result.block, folder),
        stop=None if result.stop is None else bound_text(result.stop, folder),
        context=tuple(bound_text(text, folder) for text in result.context),
        messages=tuple(bound_text(text, folder) for text in result.messages),
        permission=permission,
        first=bound_text(result.first, folder),
        title=" ".join(result.title.split())[:MAX_TITLE],
    )

"""The events that hooks can be told of, and what an answer to each may say."""

from handrail.records import record

CONTEXT = frozenset(("additionalContext",))


@record
class HookEvent:
    """One kind of moment. `has_say`: a hook that cannot run is not an allow, so its failure has to be asked about."""

    name: str
    matches: str = ""
    """The input field that matchers are compared with; empty = matchers are ignored."""
    says: frozenset[str] = frozenset()
    """What `hookSpecificOutput` may hold."""
    timeout: float = 600.0
    max_timeout: float = float("inf")
    of_tool: bool = False
    has_say: bool = False
    blocks: bool = False
    """Exit code 2 and `decision: block` have an effect."""
    talks: bool = False
    """Plain text on standard output is something the model should know."""


EVENTS = {
    event.name: event
    for event in (
        HookEvent(
            "PreToolUse",
            "tool_name",
            CONTEXT | {"permissionDecision", "permissionDecisionReason", "updatedInput"},
            of_tool=True,
            has_say=True,
        ),
        HookEvent("PermissionRequest", "tool_name", frozenset(("decision",)), of_tool=True),
        HookEvent(
            "PostToolUse",
            "tool_name",
            CONTEXT | {"updatedToolOutput", "updatedMCPToolOutput"},
            of_tool=True,
            blocks=True,
        ),
        HookEvent("PostToolUseFailure", "tool_name", CONTEXT, of_tool=True, blocks=True),
        HookEvent("PostToolBatch", says=CONTEXT, blocks=True),
        HookEvent(
            "UserPromptSubmit",
            says=CONTEXT | {"sessionTitle", "suppressOriginalPrompt"},
            timeout=30.0,
            blocks=True,
            talks=True,
        ),
        HookEvent("Stop", says=CONTEXT, blocks=True),
        HookEvent("SubagentStart", "agent_type", CONTEXT),
        HookEvent("SubagentStop", "agent_type", CONTEXT, blocks=True),
        HookEvent(
            "SessionStart",
            "source",
            CONTEXT | {"initialUserMessage", "sessionTitle", "watchPaths", "reloadSkills"},
            talks=True,
        ),
        HookEvent("SessionEnd", "reason", timeout=1.5, max_timeout=60.0),
        HookEvent("PreCompact", "trigger", blocks=True),
        HookEvent("PostCompact", "trigger"),
        HookEvent("Notification", "notification_type", CONTEXT),
        HookEvent("ConfigChange", "source", blocks=True),
        HookEvent("UserPromptExpansion", "command_name", CONTEXT, timeout=30.0, blocks=True, talks=True),
        HookEvent("PermissionDenied", "tool_name", frozenset(("retry",)), of_tool=True),
        HookEvent("StopFailure", "error"),
        HookEvent("InstructionsLoaded", "load_reason"),
        HookEvent("CwdChanged", says=frozenset(("watchPaths",))),
    )
}

# Events of other programs' settings for which there is no moment here yet.
UNSUPPORTED = frozenset(
    (
        "DirectoryAdded", "Elicitation", "ElicitationResult", "FileChanged", "MessageDisplay", "PostModelSwitch",
        "PreModelSwitch", "Setup", "TaskCompleted", "TaskCreated", "TeammateIdle", "WorktreeCreate", "WorktreeRemove",
    )
)  # fmt: skip

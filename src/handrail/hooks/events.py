"""The events that hooks can subscribe to, and what the output for each may contain."""

from handrail.records import record

CONTEXT = frozenset(("additionalContext",))
ANSWER = frozenset(("action", "content"))


@record
class HookEvent:
    """One kind of event. `decides`: hooks allow or refuse it, so a hook that fails must not count as an allow."""

    name: str
    matches: str = ""
    """The input field that matchers are compared with; empty = matchers are ignored."""
    output_keys: frozenset[str] = frozenset()
    """The keys that `hookSpecificOutput` may have."""
    timeout: float = 600.0
    max_timeout: float = float("inf")
    of_tool: bool = False
    decides: bool = False
    blocks: bool = False
    """Exit code 2 and `decision: block` have an effect."""
    speaks_to_model: bool = False
    """Plain text on standard output is passed to the model."""


EVENTS = {
    event.name: event
    for event in (
        HookEvent(
            "PreToolUse",
            "tool_name",
            CONTEXT | {"permissionDecision", "permissionDecisionReason", "updatedInput"},
            of_tool=True,
            decides=True,
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
        HookEvent("PostToolBatch", output_keys=CONTEXT, blocks=True),
        HookEvent(
            "UserPromptSubmit",
            output_keys=CONTEXT | {"sessionTitle", "suppressOriginalPrompt"},
            timeout=30.0,
            blocks=True,
            speaks_to_model=True,
        ),
        HookEvent("Stop", output_keys=CONTEXT, blocks=True),
        HookEvent("SubagentStart", "agent_type", CONTEXT),
        HookEvent("SubagentStop", "agent_type", CONTEXT, blocks=True),
        HookEvent(
            "SessionStart",
            "source",
            CONTEXT | {"initialUserMessage", "sessionTitle", "watchPaths", "reloadSkills"},
            speaks_to_model=True,
        ),
        HookEvent("SessionEnd", "reason", timeout=1.5, max_timeout=60.0),
        HookEvent("PreCompact", "trigger", blocks=True),
        HookEvent("PostCompact", "trigger"),
        HookEvent("Notification", "notification_type", CONTEXT),
        HookEvent("ConfigChange", "source", blocks=True),
        HookEvent("UserPromptExpansion", "command_name", CONTEXT, timeout=30.0, blocks=True, speaks_to_model=True),
        HookEvent("PermissionDenied", "tool_name", frozenset(("retry",)), of_tool=True),
        HookEvent("StopFailure", "error"),
        HookEvent("InstructionsLoaded", "load_reason"),
        HookEvent("Elicitation", "mcp_server_name", ANSWER, blocks=True),
        HookEvent("ElicitationResult", "mcp_server_name", ANSWER, blocks=True),
        HookEvent("WorktreeCreate", output_keys=frozenset(("worktreePath",)), blocks=True, speaks_to_model=True),
        HookEvent("WorktreeRemove"),
        HookEvent("TaskCreated", blocks=True),
        HookEvent("TaskCompleted", blocks=True),
        HookEvent("TeammateIdle", blocks=True),
        HookEvent("CwdChanged", output_keys=frozenset(("watchPaths",))),
    )
}

# Events in the settings of other programs that do not exist here yet.
UNSUPPORTED = frozenset(
    (
        "DirectoryAdded", "FileChanged", "MessageDisplay", "PostModelSwitch",
        "PreModelSwitch", "Setup",
    )
)  # fmt: skip

"""The events that hooks can be told of, and what an answer to each may say."""

from handrail.records import record

CONTEXT = frozenset(("additionalContext",))


@record
class Event:
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
        Event(
            "PreToolUse",
            "tool_name",
            CONTEXT | {"permissionDecision", "permissionDecisionReason", "updatedInput"},
            of_tool=True,
            has_say=True,
        ),
        Event("PermissionRequest", "tool_name", frozenset(("decision",)), of_tool=True),
        Event(
            "PostToolUse",
            "tool_name",
            CONTEXT | {"updatedToolOutput", "updatedMCPToolOutput"},
            of_tool=True,
            blocks=True,
        ),
        Event("PostToolUseFailure", "tool_name", CONTEXT, of_tool=True, blocks=True),
        Event("PostToolBatch", says=CONTEXT, blocks=True),
        Event(
            "UserPromptSubmit",
            says=CONTEXT | {"sessionTitle", "suppressOriginalPrompt"},
            timeout=30.0,
            blocks=True,
            talks=True,
        ),
        Event("Stop", says=CONTEXT, blocks=True),
        Event("SubagentStart", "agent_type", CONTEXT),
        Event("SubagentStop", "agent_type", CONTEXT, blocks=True),
        Event(
            "SessionStart",
            "source",
            CONTEXT | {"initialUserMessage", "sessionTitle", "watchPaths", "reloadSkills"},
            talks=True,
        ),
        Event("SessionEnd", "reason", timeout=1.5, max_timeout=60.0),
        Event("PreCompact", "trigger", blocks=True),
        Event("PostCompact", "trigger"),
        Event("Notification", "notification_type", CONTEXT),
        Event("ConfigChange", "source", blocks=True),
        Event("UserPromptExpansion", "command_name", CONTEXT, timeout=30.0, blocks=True, talks=True),
        Event("PermissionDenied", "tool_name", frozenset(("retry",)), of_tool=True),
        Event("StopFailure", "error"),
        Event("InstructionsLoaded", "load_reason"),
        Event("CwdChanged", says=frozenset(("watchPaths",))),
    )
}

# Events of other programs' settings for which there is no moment here yet.
UNSUPPORTED = frozenset(
    (
        "DirectoryAdded", "Elicitation", "ElicitationResult", "FileChanged", "MessageDisplay", "PostModelSwitch",
        "PreModelSwitch", "Setup", "TaskCompleted", "TaskCreated", "TeammateIdle", "WorktreeCreate", "WorktreeRemove",
    )
)  # fmt: skip

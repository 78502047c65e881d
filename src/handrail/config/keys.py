"""
The table of known settings, from which checking, merging, trust, the published JSON Schema and the docs are derived.

The type of a key is a fragment of JSON Schema. Checking understands type, enum, minimum, items, properties,
additionalProperties, required, oneOf (of required) and the one pattern of NAME.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeAlias

from handrail.records import record

Schema: TypeAlias = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
NAME: Schema = {"type": "string", "pattern": "\\S"}
NAMES: Schema = {"type": "array", "items": NAME}
FLAG: Schema = {"type": "boolean"}
TEXTS: Schema = {"type": "array", "items": TEXT}
TEXT_MAP: Schema = {"type": "object", "additionalProperties": TEXT}
ANY_MAP: Schema = {"type": "object"}
DISABLE: Schema = {"type": "string", "enum": ["disable"]}
HOOKS: Schema = {
    "type": "object",
    "additionalProperties": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "matcher": TEXT,
                "hooks": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"type": {"type": "string"}, "timeout": {"type": "number", "minimum": 0}},
                        "required": ["type"],
                    },
                },
            },
            "required": ["hooks"],
        },
    },
}
MODES: Schema = {
    "type": "string",
    "enum": ["default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions", "manual"],
}
EFFORTS: Schema = {"type": "string", "enum": ["minimal", "low", "medium", "high", "xhigh", "max"]}
PROVIDERS: Schema = {"type": "string", "enum": ["anthropic", "openai", "openai-responses"]}
WAITS: Schema = {"type": "string", "enum": ["60s", "5m", "10m"]}
DURABILITY: Schema = {"type": "string", "enum": ["process", "power"]}
SERVERS: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"serverName": TEXT, "serverCommand": TEXTS, "serverUrl": TEXT},
        "oneOf": [{"required": [name]} for name in ("serverName", "serverCommand", "serverUrl")],
    },
}
SEARCHES: Schema = {"type": "string", "enum": ["provider", "searxng", "brave", "tavily", "none"]}
COUNT: Schema = {"type": "integer", "minimum": 1}
AMOUNT: Schema = {"type": "number", "minimum": 0}
COUNTS: Schema = {"type": "object", "additionalProperties": COUNT}
FLAGS: Schema = {"type": "object", "additionalProperties": FLAG}
EARLY_STARTS: Schema = {"type": "string", "enum": ["permitted", "safe", "off", "all"]}
TOOL_SEARCH: Schema = {"type": "string", "enum": ["on", "auto", "off"]}
SIBLING_ERRORS: Schema = {"type": "string", "enum": ["shell-chain", "isolate", "all"]}
DOLLARS: Schema = {"type": "number", "minimum": 0}
MODEL_FACTS: Schema = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "properties": {
            "contextWindow": COUNT,
            **{f"{what}Price": DOLLARS for what in ("input", "output", "cacheRead", "cacheWrite")},
        },
    },
}
THEMES: Schema = {"type": "string", "enum": ["dark", "light", "colour-blind", "none"]}
EDITOR_MODES: Schema = {"type": "string", "enum": ["normal", "vim"]}
NOTIFICATIONS: Schema = {"type": "string", "enum": ["bell", "desktop", "off"]}
STATUS_LINE: Schema = {"type": "object", "properties": {"type": TEXT, "command": TEXT}}

ALWAYS = "always"


@record
class Key:
    """
    One known setting. `narrows`: the values that count in a folder that is not trusted yet (none by default).

    `managed`: it counts in policy files only. `whole`: the value of the highest source is taken unmerged. `raw`: only
    its type is checked here; the code that uses it parses it and knows what a mistake in it means.
    """

    name: str
    schema: Schema
    text: str
    narrows: tuple[Any, ...] | str = ()
    managed: bool = False
    whole: bool = False
    raw: bool = False

    @property
    def has_effect(self) -> bool:
        """Whether it does anything; others are kept for other programs, or for later."""
        return not self.text.endswith("without effect yet.")

    @property
    def path(self) -> tuple[str, ...]:
        """The name as a path through objects."""
        return tuple(self.name.split("."))


KEYS = (
    Key("$schema", TEXT, "Where editors find the JSON Schema of this file.", ALWAYS),
    Key("permissions.allow", TEXTS, "Rules for calls that run without a question."),
    Key("permissions.ask", TEXTS, "Rules for calls that always need consent.", ALWAYS),
    Key("permissions.deny", TEXTS, "Rules for calls that are never allowed.", ALWAYS),
    Key(
        "permissions.defaultMode",
        MODES,
        "The permission mode that a session starts in; an untrusted folder can only make it stricter.",
        ("default", "manual", "plan", "dontAsk"),
    ),
    Key("permissions.additionalDirectories", TEXTS, "Additional working folders."),
    Key(
        "permissions.readableServices",
        TEXTS,
        "Services that read-only commands may query without a question: `cluster:CONTEXT` for kubectl and helm, "
        "`forge:HOST` for gh. Has an effect in your own settings, flags and policy files, never in those of a "
        "project.",
    ),
    Key("permissions.disableBypassPermissionsMode", DISABLE, "Makes the mode `bypassPermissions` unavailable.", ALWAYS),
    Key("permissions.disableAutoMode", DISABLE, "Makes the mode `auto` unavailable.", ALWAYS),
    Key(
        "allowManagedPermissionRulesOnly",
        FLAG,
        "Only policy files can add allow rules and working folders.",
        managed=True,
    ),
    Key("allowManagedHooksOnly", FLAG, "Only hooks in policy files run.", managed=True),
    Key(
        "allowManagedMcpServersOnly",
        FLAG,
        "Only policy files can set `allowedMcpServers`; if none does, no MCP server is used.",
        managed=True,
    ),
    Key(
        "policyCommand",
        TEXTS,
        "A program, with its arguments, that prints further policy settings; if it fails, nothing runs.",
        managed=True,
        whole=True,
    ),
    Key(
        "policyUrl",
        TEXT,
        "An https URL that returns further policy settings; without an answer or a cached copy, nothing runs.",
        managed=True,
    ),
    Key("env", TEXT_MAP, "Environment variables for the session and the programs it starts, except MCP servers."),
    Key(
        "hooks",
        HOOKS,
        "Commands and HTTP endpoints that run at events, such as before or after a tool call.",
        raw=True,
    ),
    Key("disableAllHooks", FLAG, "Turns all hooks off. Hooks in policy files can only be turned off in policy files."),
    Key(
        "strictHooks",
        FLAG,
        "Whether a PreToolUse hook that exits with code 1 leads to a question (default: true for `.handrail` files).",
    ),
    Key("allowedHttpHookUrls", TEXTS, "Patterns of the URLs that HTTP hooks may call."),
    Key("httpHookAllowedEnvVars", TEXTS, "Environment variables that the headers of HTTP hooks may use."),
    Key("model", NAME, "The model to use."),
    Key("fallbackModel", NAMES, "Models to try, in this order, when the first one is overloaded.", whole=True),
    Key("availableModels", NAMES, "The models that may be used; the first one is the default.", whole=True),
    Key("modelOverrides", TEXT_MAP, "The server's own names for models, by their usual names."),
    Key(
        "models",
        MODEL_FACTS,
        "Context windows and prices (dollars per million tokens) of models, by the beginning of their names.",
    ),
    Key("provider", PROVIDERS, "The API format of the server."),
    Key("baseUrl", TEXT, "The base URL of the server."),
    Key("apiKeyHelper", TEXT, "A shell command that prints an API key; used if the environment has none."),
    Key("effortLevel", EFFORTS, "How hard the model should think."),
    Key("alwaysThinkingEnabled", FLAG, "Whether the model thinks before it answers."),
    Key("enableAllProjectMcpServers", FLAG, "Approves every server in `.mcp.json`.", (False,)),
    Key("enabledMcpjsonServers", TEXTS, "The servers in `.mcp.json` that are approved."),
    Key("disabledMcpjsonServers", TEXTS, "The servers in `.mcp.json` that are rejected.", ALWAYS),
    Key("allowedMcpServers", SERVERS, "The only MCP servers that may be used, by name, command or URL."),
    Key("deniedMcpServers", SERVERS, "MCP servers that may never be used, whatever other settings say.", ALWAYS),
    Key("lspServers", ANY_MAP, "Language servers by name: how each one is started, and for which files.", raw=True),
    Key("lspDiagnostics", FLAG, "After an edit, show the model new errors in the file (default: true).", ALWAYS),
    Key(
        "mcpWaitMs",
        AMOUNT,
        "How many milliseconds the first request waits for MCP servers (default: 150 for new ones, 0 for known ones).",
    ),
    Key(
        "toolSearch.mode",
        TOOL_SEARCH,
        "When tool definitions are deferred until the model searches for them: always, when there are many, or never.",
    ),
    Key(
        "toolSearch.percent",
        COUNT,
        "In mode `auto`, the percentage of the context window above which definitions are deferred (default: 10).",
    ),
    Key("sandbox.enabled", FLAG, "Runs commands in a sandbox."),
    Key("sandbox.autoAllowBashIfSandboxed", FLAG, "Sandboxed commands run without a question.", (False,)),
    Key("sandbox.allowUnsandboxedCommands", FLAG, "Lets a command ask to run outside the sandbox.", (False,)),
    Key("sandbox.excludedCommands", TEXTS, "Commands that run outside the sandbox."),
    Key("sandbox.network.allowedDomains", TEXTS, "Hosts that sandboxed commands may reach."),
    Key("sandbox.network.deniedDomains", TEXTS, "Hosts that sandboxed commands may not reach.", ALWAYS),
    Key("sandbox.filesystem.allowWrite", TEXTS, "Paths that sandboxed commands may write to."),
    Key("sandbox.filesystem.denyWrite", TEXTS, "Paths that sandboxed commands may not write to.", ALWAYS),
    Key("sandbox.filesystem.allowRead", TEXTS, "Paths that sandboxed commands may read."),
    Key("sandbox.filesystem.denyRead", TEXTS, "Paths that sandboxed commands may not read.", ALWAYS),
    Key("agent", NAME, "The agent that leads the session, as with `--agent`."),
    Key(
        "outputStyle",
        TEXT,
        "The style of the answers, by its exact name: default, Proactive, Concise, Explanatory, Learning, or your own.",
    ),
    Key("statusLine", STATUS_LINE, "A command that prints a status line for the bottom of the terminal.", whole=True),
    Key("theme", THEMES, "The colour theme (default: chosen by the background of the terminal)."),
    Key("editorMode", EDITOR_MODES, "The editing keys of the input line: `normal` (like Emacs) or `vim`."),
    Key("notifications", NOTIFICATIONS, "How you are notified that a question is waiting (default: bell)."),
    Key("language", TEXT, "The language of the answers. Accepted, but without effect yet."),
    Key(
        "plansDirectory",
        TEXT,
        "The folder for plan files, relative to the working folder (default: a folder of the session).",
    ),
    Key(
        "sdkSessionCopy",
        FLAG,
        "Whether sessions that an SDK drives are also copied to where the SDK looks for them (default: true).",
        (False,),
    ),
    Key(
        "cleanupPeriodDays", {"type": "integer", "minimum": 0}, "How many days unused sessions are kept (default: 30)."
    ),
    Key("webFetch.robots", FLAG, "Whether WebFetch obeys robots.txt (default: true).", (True,)),
    Key("webFetch.requestsPerMinute", COUNT, "How many requests per minute WebFetch sends to one host (default: 30)."),
    Key("webFetch.maxBytes", COUNT, "The most bytes of a page that are read, after decompression (default: 10000000)."),
    Key("webFetch.seconds", COUNT, "The most seconds that fetching a page may take (default: 30)."),
    Key(
        "webFetch.model",
        TEXT,
        "The model that reads fetched pages and answers questions about them (default: that of the session); "
        "`none` = no model.",
    ),
    Key("webSearch.backend", SEARCHES, "The search service (default: the first one that is configured)."),
    Key(
        "webSearch.url", TEXT, "The URL of a SearXNG server, or of a server that is compatible with the chosen service."
    ),
    Key("webSearch.maxPerSession", COUNT, "The most web searches in one session (default: 200)."),
    Key(
        "remoteServers",
        ANY_MAP,
        "Servers (`handrail serve`) that RemoteTrigger may use, by name: their `url`, and `tokenEnv`, the "
        "environment variable that holds the token. Has an effect in your own settings, flags and policy files, "
        "never in those of a project.",
        raw=True,
    ),
    Key(
        "skipWebFetchPreflight",
        FLAG,
        "Fetches pages without checking a list of hosts first. Accepted, but without effect yet.",
        (False,),
    ),
    Key("respectGitignore", FLAG, "Leaves ignored files out of file suggestions. Accepted, but without effect yet."),
    Key("disableSkillShellExecution", FLAG, "Slash commands defined in files do not run shell commands.", (True,)),
    Key(
        "askUserQuestionTimeout",
        WAITS,
        "How long a question from the model waits for an answer before the model decides for itself (default: "
        "forever).",
    ),
    Key("enabledPlugins", FLAGS, "Which plugins are enabled, by `name@marketplace`; only plugins that you have added."),
    Key("extraKnownMarketplaces", ANY_MAP, "Additional marketplaces that plugins can be added from, by name."),
    Key("autoCompactEnabled", FLAG, "Whether long conversations are compacted automatically (default: true)."),
    Key(
        "commandOutputQuota",
        {"type": "integer", "minimum": 1},
        "The number of bytes of output after which a command is stopped (default: 2000000000).",
    ),
    Key(
        "features",
        FLAGS,
        "Which families of tools are offered: `agents`, `background`, `schedules`, `task-list`, `web`, "
        "`worktrees` (default: all).",
    ),
    Key("maxConcurrentAgents", COUNT, "How many sub-agents work at the same time; further ones wait (default: 10)."),
    Key(
        "agentQuestionSeconds",
        AMOUNT,
        "How many seconds a sub-agent's question waits before it counts as refused (default: 600).",
    ),
    Key("agentLimits.turns", COUNT, "The most turns of a sub-agent (default: 200)."),
    Key("agentLimits.dollars", AMOUNT, "The most dollars that a sub-agent may cost (default: 20)."),
    Key("agentLimits.seconds", AMOUNT, "The most seconds that a sub-agent may run (default: 3600)."),
    Key("agentLimits.depth", COUNT, "How many levels deep sub-agents may start sub-agents of their own (default: 3)."),
    Key(
        "agentsInBackground",
        FLAG,
        "Whether sub-agents run in the background unless the call says otherwise (default: wherever their end "
        "can be reported).",
    ),
    Key(
        "scheduling.earlyStart",
        EARLY_STARTS,
        "Which calls start while the answer is still arriving (default: permitted).",
    ),
    Key("scheduling.maxParallel", COUNT, "How many calls run in parallel (default: 10)."),
    Key("scheduling.maxParallelByTool", COUNTS, "How many calls of a tool run in parallel, by its name."),
    Key(
        "scheduling.siblingErrors", SIBLING_ERRORS, "Which other calls a failed command cancels (default: shell-chain)."
    ),
    Key(
        "results.maxChars",
        COUNT,
        "The most characters of a result that stay in the conversation; the full result is kept in a file.",
    ),
    Key("results.maxCharsByTool", COUNTS, "The same for a tool, by its name; overrides the tool's own limit."),
    Key("results.quotaBytes", COUNT, "The most bytes of large results that are kept on disk (default: 2000000000)."),
    Key("results.retentionDays", COUNT, "How many days large results are kept (default: 30)."),
    Key("redact", TEXTS, "Regular expressions for further secrets, which are removed from sessions and logs."),
    Key("durability", DURABILITY, "What saved sessions survive: the end of the process, or also a power failure."),
    Key("includeGitInstructions", FLAG, "Tells the model how to work with git. Accepted, but without effect yet."),
    Key(
        "attribution",
        ANY_MAP,
        "What commits and pull requests say about their author. Accepted, but without effect yet.",
    ),
    Key(
        "claudeMdExcludes",
        TEXTS,
        "Memory files to leave out, as globs of absolute paths, for example `**/vendor/CLAUDE.md`.",
    ),
)

Tree: TypeAlias = Mapping[str, Any]
"""Names of one level -> a Key, or the tree of the next level."""


@cache
def tree() -> Tree:
    """The table as a tree of sections."""
    top: dict[str, Any] = {}
    for key in KEYS:
        *sections, last = key.path
        level = top
        for section in sections:
            level = level.setdefault(section, {})
        level[last] = key
    return top


def find(path: tuple[str | int, ...]) -> Key | None:
    """The key that a path leads to or into; None if it is not known."""
    level: Any = tree()
    for step in path:
        if isinstance(level, Key):
            return level
        level = level.get(step)
        if level is None:
            return None
    return level if isinstance(level, Key) else None

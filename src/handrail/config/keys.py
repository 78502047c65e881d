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
    Key("$schema", TEXT, "Where editors find the schema of this file.", ALWAYS),
    Key("permissions.allow", TEXTS, "Rules for calls that may run without a question."),
    Key("permissions.ask", TEXTS, "Rules for calls that are always asked for.", ALWAYS),
    Key("permissions.deny", TEXTS, "Rules for calls that never run.", ALWAYS),
    Key(
        "permissions.defaultMode",
        MODES,
        "The mode a session starts in; untrusted folders can only make it stricter.",
        ("default", "manual", "plan", "dontAsk"),
    ),
    Key("permissions.additionalDirectories", TEXTS, "More working folders."),
    Key(
        "permissions.readableServices",
        TEXTS,
        "Services that commands which only read may ask: `cluster:CONTEXT` for kubectl and helm, `forge:HOST` for gh. "
        "Counts in your own settings, flags and policy files, never in those of a project.",
    ),
    Key("permissions.disableBypassPermissionsMode", DISABLE, "No session can enter bypassPermissions.", ALWAYS),
    Key("permissions.disableAutoMode", DISABLE, "No session can enter auto.", ALWAYS),
    Key("allowManagedPermissionRulesOnly", FLAG, "Allow rules and folders count from policy files only.", managed=True),
    Key("allowManagedHooksOnly", FLAG, "Hooks count from policy files only.", managed=True),
    Key(
        "allowManagedMcpServersOnly",
        FLAG,
        "`allowedMcpServers` counts from policy files only; without one there, no server is used.",
        managed=True,
    ),
    Key(
        "policyCommand",
        TEXTS,
        "A program with arguments that prints more policy settings; if it fails, nothing runs.",
        managed=True,
        whole=True,
    ),
    Key(
        "policyUrl",
        TEXT,
        "An https address that gives more policy settings; without an answer or a kept copy, nothing runs.",
        managed=True,
    ),
    Key("env", TEXT_MAP, "Variables of the session and of the programs it starts, except MCP servers."),
    Key("hooks", HOOKS, "Commands, URLs and the like that are asked before and after things happen.", raw=True),
    Key("disableAllHooks", FLAG, "No hooks. Hooks of policy files can only be switched off there."),
    Key("strictHooks", FLAG, "Whether exit code 1 of a PreToolUse hook asks (default: yes, for `.handrail` files)."),
    Key("allowedHttpHookUrls", TEXTS, "URL patterns that HTTP hooks may use."),
    Key("httpHookAllowedEnvVars", TEXTS, "Variables that headers of HTTP hooks may use."),
    Key("model", NAME, "Name of the model."),
    Key("fallbackModel", NAMES, "Models to try when the first is overloaded, in this order.", whole=True),
    Key("availableModels", NAMES, "The only models that may be used; the first is the default.", whole=True),
    Key("modelOverrides", TEXT_MAP, "Names under which a server knows models, by their usual names."),
    Key("models", MODEL_FACTS, "Windows and prices (dollars per million tokens), by the beginning of models' names."),
    Key("provider", PROVIDERS, "Wire format of the server."),
    Key("baseUrl", TEXT, "Server to ask."),
    Key("apiKeyHelper", TEXT, "Shell command that prints a credential; used when the environment holds none."),
    Key("effortLevel", EFFORTS, "How hard the model should think."),
    Key("alwaysThinkingEnabled", FLAG, "Whether the model reasons first."),
    Key("enableAllProjectMcpServers", FLAG, "Approve every server of `.mcp.json`.", (False,)),
    Key("enabledMcpjsonServers", TEXTS, "Approved servers of `.mcp.json`."),
    Key("disabledMcpjsonServers", TEXTS, "Rejected servers of `.mcp.json`.", ALWAYS),
    Key("allowedMcpServers", SERVERS, "The only MCP servers that may be used, by name, command or address."),
    Key("deniedMcpServers", SERVERS, "MCP servers that may not be used, whatever else is said.", ALWAYS),
    Key("lspServers", ANY_MAP, "Language servers by name: how each is started, and for which files.", raw=True),
    Key(
        "lspDiagnostics", FLAG, "After edits, tell the model what is newly wrong with the file (default: yes).", ALWAYS
    ),
    Key("mcpWaitMs", AMOUNT, "Milliseconds that the first request waits for MCP servers (default: 150; 0 = none)."),
    Key("toolSearch.mode", TOOL_SEARCH, "Which definitions wait to be searched for: all that may, many, none."),
    Key("toolSearch.percent", COUNT, "In the mode auto they wait above this share of the window (default: 10)."),
    Key("sandbox.enabled", FLAG, "Run commands in a sandbox."),
    Key("sandbox.autoAllowBashIfSandboxed", FLAG, "Sandboxed commands run without a question.", (False,)),
    Key("sandbox.allowUnsandboxedCommands", FLAG, "A command may ask to run outside the sandbox.", (False,)),
    Key("sandbox.excludedCommands", TEXTS, "Commands that run outside the sandbox."),
    Key("sandbox.network.allowedDomains", TEXTS, "Hosts that sandboxed commands may reach."),
    Key("sandbox.network.deniedDomains", TEXTS, "Hosts that sandboxed commands may not reach.", ALWAYS),
    Key("sandbox.filesystem.allowWrite", TEXTS, "Paths that sandboxed commands may write."),
    Key("sandbox.filesystem.denyWrite", TEXTS, "Paths that sandboxed commands may not write.", ALWAYS),
    Key("sandbox.filesystem.allowRead", TEXTS, "Paths that sandboxed commands may read."),
    Key("sandbox.filesystem.denyRead", TEXTS, "Paths that sandboxed commands may not read.", ALWAYS),
    Key("agent", NAME, "The agent that leads the session, as with --agent."),
    Key(
        "outputStyle",
        TEXT,
        "Style of the answers, by its exact name: default, Proactive, Concise, Explanatory, Learning, or your own.",
    ),
    Key("statusLine", STATUS_LINE, "A command that prints a line for the bottom of the terminal.", whole=True),
    Key("theme", THEMES, "Colours of the terminal (default: by its background)."),
    Key("editorMode", EDITOR_MODES, "How the input line is edited: normal (like Emacs) or vim."),
    Key("notifications", NOTIFICATIONS, "How the terminal says that a question waits (default: bell)."),
    Key("language", TEXT, "Language of the answers. Kept, without effect yet."),
    Key("plansDirectory", TEXT, "The folder of plans, from the working folder; by default that of the session."),
    Key(
        "sdkSessionCopy",
        FLAG,
        "Whether sessions that an SDK drives are copied to where its own functions look for them (default: yes).",
        (False,),
    ),
    Key("cleanupPeriodDays", {"type": "integer", "minimum": 0}, "Days that unused sessions are kept (default: 30)."),
    Key("webFetch.robots", FLAG, "Whether pages that robots.txt excludes are left alone (default: yes).", (True,)),
    Key("webFetch.requestsPerMinute", COUNT, "How often one host is asked for pages in a minute (default: 30)."),
    Key("webFetch.maxBytes", COUNT, "Bytes of a page that are read, after decompression (default: 10000000)."),
    Key("webFetch.seconds", COUNT, "Seconds that a page may take (default: 30)."),
    Key(
        "webFetch.model",
        TEXT,
        "The model that reads pages and answers questions about them (default: that of the session); none = no model.",
    ),
    Key("webSearch.backend", SEARCHES, "Which service searches the web (default: the first that is set up)."),
    Key("webSearch.url", TEXT, "Address of a SearXNG server, or of another server that answers like the service."),
    Key("webSearch.maxPerSession", COUNT, "Searches of one session (default: 200)."),
    Key(
        "remoteServers",
        ANY_MAP,
        "Servers (handrail serve) that RemoteTrigger may ask, by name: `url`, and `tokenEnv`, the variable with our "
        "token. Counts in your own settings, flags and policy files, never in those of a project.",
        raw=True,
    ),
    Key(
        "skipWebFetchPreflight",
        FLAG,
        "Fetch pages without asking a list of hosts first. Kept, without effect yet.",
        (False,),
    ),
    Key("respectGitignore", FLAG, "Leave out ignored files when files are suggested. Kept, without effect yet."),
    Key("disableSkillShellExecution", FLAG, "Files of slash commands run no command lines.", (True,)),
    Key(
        "askUserQuestionTimeout",
        WAITS,
        "How long a question of the model waits; then it decides itself (default: for ever).",
    ),
    Key(
        "enabledPlugins", FLAGS, "Plugins that are switched on or off, by name@marketplace; only those that you added."
    ),
    Key("extraKnownMarketplaces", ANY_MAP, "More places that plugins can be added from, by name."),
    Key("autoCompactEnabled", FLAG, "Whether long conversations are shortened by themselves."),
    Key(
        "commandOutputQuota",
        {"type": "integer", "minimum": 1},
        "Bytes of output after which a command is stopped (default: 2000000000).",
    ),
    Key(
        "features",
        FLAGS,
        "Tool families that are there or not: `agents`, `background`, `schedules`, `task-list`, `web`, `worktrees` "
        "(default: all).",
    ),
    Key("maxConcurrentAgents", COUNT, "How many sub-agents work at a time; others wait (default: 10)."),
    Key("agentQuestionSeconds", AMOUNT, "Seconds after which a sub-agent's question is a no (default: 600)."),
    Key("agentLimits.turns", COUNT, "Answers after which a sub-agent ends (default: 200)."),
    Key("agentLimits.dollars", AMOUNT, "Dollars after which a sub-agent ends (default: 20)."),
    Key("agentLimits.seconds", AMOUNT, "Seconds after which a sub-agent ends (default: 3600)."),
    Key("agentLimits.depth", COUNT, "How deep sub-agents may start sub-agents of their own (default: 3)."),
    Key(
        "agentsInBackground",
        FLAG,
        "Sub-agents work in the background if the call does not say (default: where their end is told).",
    ),
    Key("scheduling.earlyStart", EARLY_STARTS, "Which calls start while the answer arrives (default: permitted)."),
    Key("scheduling.maxParallel", COUNT, "How many calls run at a time (default: 10)."),
    Key("scheduling.maxParallelByTool", COUNTS, "The same for single tools, by name."),
    Key("scheduling.siblingErrors", SIBLING_ERRORS, "Which calls a failed command cancels (default: shell-chain)."),
    Key("results.maxChars", COUNT, "Characters of a result that stay in the conversation; the rest is in a file."),
    Key("results.maxCharsByTool", COUNTS, "The same for single tools, whatever they say themselves."),
    Key("results.quotaBytes", COUNT, "Bytes of long results that are kept (default: 2000000000)."),
    Key("results.retentionDays", COUNT, "Days that long results are kept (default: 30)."),
    Key("redact", TEXTS, "Regular expressions of further secrets, which no session and no log shows."),
    Key("durability", DURABILITY, "What a session outlives: the end of the process, or of the power, too."),
    Key("includeGitInstructions", FLAG, "Tell the model how to work with git. Kept, without effect yet."),
    Key("attribution", ANY_MAP, "What commits and pull requests say about their author. Kept, without effect yet."),
    Key("claudeMdExcludes", TEXTS, "Memory files that are not read: globs of whole paths, **/vendor/CLAUDE.md."),
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

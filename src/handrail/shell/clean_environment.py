"""
The variables that every command is started with, so that no pager and no prompt can block it, and that the analysis of
commands which only read relies on. A line that could change one of them is not read-only.
"""

SET_FOR_ALL = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "EDITOR": "true",
    "VISUAL": "true",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "NO_UPDATE_NOTIFIER": "1",
    "npm_config_update_notifier": "false",
    "HANDRAIL": "1",
}
SET_FOR_READING = {
    **SET_FOR_ALL,
    "GIT_OPTIONAL_LOCKS": "0",
    "PYTHONSAFEPATH": "1",  # modules are not looked for in the working folder (Python 3.11)
    "LESSSECURE": "1",  # a pager runs no input filter, shell or editor
    "PAGERSECURE": "1",
    "npm_config_logs_max": "0",
    "npm_config_timing": "false",
    "npm_config_cache": "/dev/null",
    "GH_NO_UPDATE_NOTIFIER": "1",
    "GH_NO_EXTENSION_UPDATE_NOTIFIER": "1",
    "GH_PROMPT_DISABLED": "1",
}
"""With the settings of git (GIT_CONFIG_COUNT and the like) that a command requires, which no line may set at all."""


def takes_back(name: str, value: str | None) -> bool:
    """Whether a line with this assignment undoes what commands that only read are started with."""
    return name in SET_FOR_READING and SET_FOR_READING[name] != value

"""What programs that drive a session may ask about it, in the words of their protocol."""

from typing import Any

from handrail.session.session import Session
from handrail.session.settings.load import LoadedSettings

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY")


def session_facts(session: Session) -> dict[str, Any]:
    """What is true of a session when a prompt of it begins."""
    servers = session.servers.status() if session.servers else ()
    skills = session.skills
    return {
        "mcp_servers": [
            {"name": each["name"], "status": each["status"]}
            | ({"source": "plugin"} if each["scope"] == "plugin" else {})
            for each in servers
        ],
        "slash_commands": list(session.commands.by_name()) if session.spec.slash_commands else [],
        "agents": list(session.agents.definitions()),
        "skills": [name for name, head in skills.heads.items() if head.is_listed],
        "plugins": [each.row for each in skills.plugins.plugins] if skills.plugins else [],
        "output_style": session.style.name,
        "permissionMode": session.mode,
        "apiKeySource": key_source(session.settings.loaded),
    }


def key_source(loaded: LoadedSettings) -> str:
    """Where the credential for the model comes from; `none` if there is none."""
    helper = "apiKeyHelper" if loaded.settings.get("apiKeyHelper") else "none"
    return next((name for name in KEYS if loaded.env.get(name)), helper)

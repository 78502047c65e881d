"""
handrail's tools in agents of other frameworks, and their tools in handrail.

    from handrail.adapters import ToolSession
    from handrail.adapters.langchain import langchain_tools

    async with ToolSession(allow=["Bash(git status)"]) as session:
        agent = create_agent(model, langchain_tools(session))

Each framework has a module of its own, and nothing here imports a framework before that module is imported.
"""

from handrail.adapters.tool_session import ToolSession

__all__ = ["ToolSession"]

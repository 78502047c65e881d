"""
`handrail acp`: an editor runs handrail as its agent, by the Agent Client Protocol, version 1.

    connection   JSON-RPC over lines, in both directions
    service      the methods that editors call
    session      one session that an editor drives; `questions` asks about its calls, `choices` are its mode and model
    prompt       what an editor sends, as a message; `updates`, `tool_call` and `history` are what it gets to see

The editor's own file and terminal methods are not used: tools work on the disk, under the rules of the session.
"""

"""The released claude-agent-sdk drives handrail, unchanged, against a model server on loopback."""

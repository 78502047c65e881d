"""Sub-agents: runs of the loop inside a run."""

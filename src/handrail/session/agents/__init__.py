"""What a session does with sub-agents: finds their definitions, opens, runs and records them."""

"""Plan mode as tools: entering it, and leaving it with a plan that the person approves."""

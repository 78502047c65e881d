"""Drawing for terminals. Knows events and cards, nothing of the tools inside."""

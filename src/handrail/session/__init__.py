"""The only place that wires concrete things together."""

"""The settings of a session: read, checked, turned into a policy, and followed while they change."""

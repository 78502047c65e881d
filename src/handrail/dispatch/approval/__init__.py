"""The gate that decides by a policy, the handlers that it asks, and the audit log of decisions."""

"""The model of a session: chosen, described, exchanged, and asked beside the conversation."""

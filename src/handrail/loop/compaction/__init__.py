"""Compaction: when and how the history of a conversation is made shorter."""

"""Starting programs, bounding what they say, and leaving none of them behind."""

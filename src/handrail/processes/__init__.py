"""Starting programs, ending everything they started, bounding what they say, and confining them."""

"""Starting programs, ending everything they started, and keeping them inside a sandbox."""

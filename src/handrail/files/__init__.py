"""Files: read memory, encodings, byte-exact edits, atomic replacement, undo and path resolution."""

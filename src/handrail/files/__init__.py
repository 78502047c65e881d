"""Files: what was read, and when it was last seen."""

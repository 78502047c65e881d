"""Settings: find, read, check, merge and rewrite the files that say what may be done."""

"""What people write down for an agent: commands so far. Finds the files, reads them, and says what has no effect."""

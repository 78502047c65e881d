"""What people write down for an agent: commands, skills, output styles. Reads it, and says what has no effect."""

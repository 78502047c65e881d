"""Prompts by the clock: the grammar of cron lines, what is due, and the file of those that outlive a session."""

"""Scheduled prompts: the cron grammar, what is due, and the file of durable schedules."""

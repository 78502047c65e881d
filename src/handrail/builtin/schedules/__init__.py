"""Prompts by the clock: CronCreate, CronDelete, CronList, ScheduleWakeup."""

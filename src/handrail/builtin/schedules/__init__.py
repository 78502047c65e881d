"""Scheduled prompts: CronCreate, CronDelete, CronList, ScheduleWakeup."""

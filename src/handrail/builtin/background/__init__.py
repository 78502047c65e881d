"""The tools of background tasks: watch a command, look at a task, end it. Task lists are in task_list/."""

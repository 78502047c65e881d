"""The tools for background tasks. Task lists are in task_list/."""

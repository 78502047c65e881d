"""The task list of a session (TaskCreate, TaskGet, TaskUpdate, TaskList) and its older form, the list of TodoWrite."""

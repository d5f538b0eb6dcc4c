"""Deadlocks of tasks and threads, and locks that are not released, with the truth about each; and programs that look like one."""

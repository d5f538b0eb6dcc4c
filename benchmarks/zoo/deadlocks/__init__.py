"""Deadlocks of tasks and threads, locks that are not released, and programs that look like one."""

"""The engine: its life in one process, from arming to the last stall."""

"""The engine in pure Python: a watchdog thread and `sys._current_frames`, on any platform."""

"""Tasks of asyncio that wait for each other, and locks that were not released: the loop is idle and healthy,
and nothing moves.

`hooks` notes who waits and who acquired, `tasks` reads what a task holds and waits for, `cycles` finds those
that cannot go on, `watch` decides on each loop's own thread, `tracer` is what is registered.
"""

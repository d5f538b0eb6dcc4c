"""Tasks that wait for each other, and locks that were not released: the loop is idle and healthy, and nothing
moves.

`primitives` knows the locks, and those that others release on purpose (gates), `hooks` notes who waits and
who acquired, `asyncio_tasks` and `trio_tasks` read what a task holds and waits for from its `coroutines`,
`threads` which threads work for them and wait for them, `tasks` finds those that cannot go on, `lost` those
that nothing can wake, `watch` decides on each loop's own thread, `tracer` is what is registered.
"""

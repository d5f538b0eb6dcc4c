"""Stories of tasks in groups, told with anyio or trio: `library` is either module."""

from __future__ import annotations

from functools import partial


def group(library):
    """A task group or nursery."""
    return library.open_nursery() if hasattr(library, "open_nursery") else library.create_task_group()


class Bank:
    def __init__(self, library):
        self.accounts, self.ledger = library.Lock(), library.Lock()


async def moves(library, first, second):
    async with first:
        await library.sleep(0.1)
        async with second:
            pass


async def both(library, first, second):
    async with group(library) as tasks:
        tasks.start_soon(moves, library, first, second, name="pay")
        tasks.start_soon(moves, library, second, first, name="refund")


# ---- tasks that wait for each other, `pay` and `refund` -----------------------------------------


async def opposite_order(library):
    bank = Bank(library)

    async def pay():
        async with bank.accounts:
            await library.sleep(0.1)
            async with bank.ledger:
                pass

    async def refund():
        async with bank.ledger:
            await library.sleep(0.1)
            async with bank.accounts:
                pass

    async with group(library) as tasks:
        tasks.start_soon(pay, name="pay")
        tasks.start_soon(refund, name="refund")


async def semaphores(library):
    await both(library, library.Semaphore(1), library.Semaphore(1))


async def limiters(library):
    await both(library, library.CapacityLimiter(1), library.CapacityLimiter(1))


async def by_acquire(library):
    one, other = library.Lock(), library.Semaphore(1)

    async def pay():
        await one.acquire()
        await library.sleep(0.1)
        await other.acquire()

    async def refund():
        async with other:
            await library.sleep(0.1)
            await one.acquire()

    async with group(library) as tasks:
        tasks.start_soon(pay, name="pay")
        tasks.start_soon(refund, name="refund")


async def a_conditions_lock(library):
    await both(library, library.Condition(), library.Lock())


async def after_a_condition(library):
    """Woken, one waits for the lock of the condition again."""
    condition, lock = library.Condition(), library.Lock()

    async def pay():
        async with condition, lock:
            await condition.wait()

    async def refund():
        await library.sleep(0.1)
        async with condition:
            condition.notify()
            async with lock:
                pass

    async with group(library) as tasks:
        tasks.start_soon(pay, name="pay")
        tasks.start_soon(refund, name="refund")


CIRCLES = (opposite_order, semaphores, limiters, by_acquire, a_conditions_lock, after_a_condition)


# ---- tasks that wait for a task that needs what they hold ---------------------------------------


async def a_group_in_the_lock(library):
    lock = library.Lock()

    async def child():
        async with lock:
            pass

    async with lock, group(library) as tasks:
        tasks.start_soon(child, name="child")


async def starts_a_task_that_needs_the_lock(library):
    lock = library.Lock()

    async def child(*, task_status):
        async with lock:
            task_status.started()

    async with group(library) as tasks, lock:
        await tasks.start(child, name="child")


async def is_left_while_a_start_is_pending(library):
    lock = library.Lock()

    async def child(*, task_status):
        async with lock:
            task_status.started()

    async with group(library) as outer, lock, group(library) as tasks:
        outer.start_soon(partial(tasks.start, child, name="child"))
        await library.sleep(0.1)


PARENTS = (a_group_in_the_lock, starts_a_task_that_needs_the_lock, is_left_while_a_start_is_pending)


async def in_the_lock_of_a_child(library, wait):
    """Of anyio only. `wait`: what is awaited, of the child's handle."""
    lock = library.Lock()

    async def child():
        async with lock:
            pass

    async with group(library) as tasks, lock:
        await wait(tasks.create_task(child(), name="child"))


async def waits_for_a_handle(library):
    await in_the_lock_of_a_child(library, lambda handle: handle)


async def waits_for_the_end_of_a_handle(library):
    await in_the_lock_of_a_child(library, lambda handle: handle.wait())


HANDLES = (waits_for_a_handle, waits_for_the_end_of_a_handle)


async def nested_in_a_limiter(library):
    """There are three circles."""
    limiter = library.CapacityLimiter(3)

    async def works(depth):
        async with limiter:
            await library.sleep(0.1)
            async with group(library) as tasks:
                tasks.start_soon(works, depth + 1, name=f"works {depth + 1}")

    async with group(library) as tasks:
        tasks.start_soon(works, 0, name="works 0")


# ---- what gets on -------------------------------------------------------------------------------


async def a_busy_lock(library):
    lock = library.Lock()

    async def works():
        for _ in range(20):
            async with lock:
                await library.sleep(1)

    async with group(library) as tasks:
        for _ in range(5):
            tasks.start_soon(works)


async def a_slow_holder(library):
    lock = library.Lock()

    async def works():
        await lock.acquire()
        try:
            await library.sleep(25)
        finally:
            lock.release()

    async with group(library) as tasks:
        tasks.start_soon(works)
        tasks.start_soon(works)


async def a_limiter_that_no_task_holds(library):
    limiter = library.CapacityLimiter(1)
    await limiter.acquire_on_behalf_of("a thread")
    async with limiter:
        pass


async def a_condition_without_news(library):
    condition = library.Condition()

    async def waits():
        async with condition:
            await condition.wait()

    async with group(library) as tasks:
        tasks.start_soon(waits)
        tasks.start_soon(waits)


async def a_permit_of_another_task(library):
    permits, lock = library.Semaphore(2), library.Lock()

    async def slow():
        await permits.acquire()
        await library.sleep(10)
        permits.release()

    async with group(library) as tasks:
        tasks.start_soon(slow)
        tasks.start_soon(moves, library, permits, lock)
        tasks.start_soon(moves, library, lock, permits)


async def a_limiter_that_grows(library):
    limiter, lock = library.CapacityLimiter(1), library.Lock()

    async def grows():
        await library.sleep(10)
        limiter.total_tokens = 2

    async with group(library) as tasks:
        tasks.start_soon(grows)
        tasks.start_soon(moves, library, limiter, lock)
        tasks.start_soon(moves, library, lock, limiter)


async def a_race(library):
    lock = library.Lock()

    async def wins(scope):
        await library.sleep(10)
        scope.cancel()

    async def needs_it():
        async with lock:
            pass

    async with lock, group(library) as tasks:
        tasks.start_soon(wins, tasks.cancel_scope)
        tasks.start_soon(needs_it)


async def started_by_a_helper(library):
    lock = library.Lock()

    async def helps(task_status):
        await library.sleep(10)
        task_status.started()

    async def serves(*, task_status):
        async with group(library) as tasks:
            tasks.start_soon(helps, task_status)
            async with lock:
                pass

    async with group(library) as tasks, lock:
        await tasks.start(serves)


QUIET = (
    a_busy_lock,
    a_slow_holder,
    a_limiter_that_no_task_holds,
    a_condition_without_news,
    a_permit_of_another_task,
    a_limiter_that_grows,
    a_race,
    started_by_a_helper,
)

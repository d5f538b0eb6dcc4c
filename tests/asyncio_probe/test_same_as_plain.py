"""What a program sees of asyncio is the same with and without the probe.

Each story runs some asyncio and answers what it saw; it runs twice, and the answers must be equal.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
import traceback
import warnings
import weakref

import pytest

pytestmark = pytest.mark.native


def run(setup, *, debug=False, factory=asyncio.new_event_loop):
    """Calls setup(loop), runs the loop until something stops it, and closes it. What run_forever raised."""
    loop = factory()
    loop.set_debug(debug)
    try:
        setup(loop)
        loop.run_forever()
    except BaseException as error:  # noqa: BLE001 - it is the story
        return error
    finally:
        loop.close()
    return None


def fail():
    raise LookupError("as it must")


def contexts_of(setup, **options):
    """What the exception handler was given, as far as it can be compared."""
    contexts = []

    def keep(loop, context):
        contexts.append(context)
        loop.stop()

    run(lambda loop: (loop.set_exception_handler(keep), setup(loop)), **options)
    return contexts


def text_of(error):
    return "".join(traceback.format_exception(error))


STORIES = {}


def story(sentence):
    def register(function):
        STORIES[sentence] = function
        return function

    return register


@story("the exception handler gets message, exception and handle")
def _():
    (context,) = contexts_of(lambda loop: loop.call_soon(fail))
    return sorted(context), context["message"], repr(context["exception"]), type(context["handle"])


@story("arguments in the message are shown as asyncio shows them")
def _():
    def fail_with(*arguments):
        fail()

    partial = functools.partial(fail_with, "one")
    return [
        [context["message"] for context in contexts_of(lambda loop: loop.call_soon(partial, 3), debug=debug)]
        for debug in (False, True)
    ]


@story("in debug mode the exception handler gets the source traceback")
def _():
    (context,) = contexts_of(lambda loop: loop.call_soon(fail), debug=True)
    return sorted(context), len(context["source_traceback"]) > 0


@story("the traceback has the same lines, asyncio's own among them")
def _():
    (context,) = contexts_of(lambda loop: loop.call_soon(fail))
    text = text_of(context["exception"])
    assert "asyncio/events.py" in text
    assert ", in _run\n" in text
    return text


@story("a traceback of a callback in C has asyncio's line")
def _():
    (context,) = contexts_of(lambda loop: loop.call_soon(int, "no number"))
    return text_of(context["exception"])


@story("the exception handler sees the exception as the one being handled")
def _():
    seen = []

    def handle(loop, context):
        seen.append((sys.exception() is context["exception"], sys.exc_info()[0]))
        seen.append("LookupError" in traceback.format_exc())
        loop.stop()

    run(lambda loop: (loop.set_exception_handler(handle), loop.call_soon(fail)))
    return seen


@story("after a failed callback no exception is being handled")
def _():
    seen = []

    def setup(loop):
        loop.set_exception_handler(lambda _loop, _context: None)
        loop.call_soon(fail)
        loop.call_soon(lambda: seen.append(sys.exception()))
        loop.call_soon(loop.stop)

    run(setup)
    return seen


@story("a generator that runs a failing handle inside another one's except handles nothing afterwards")
def _():
    seen = []

    def note(*_):
        seen.append(repr(sys.exception()))

    def steps():
        asyncio.Handle(fail, (), loop)._run()
        note()
        yield
        note()

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(note)
    generator = steps()
    try:
        int("no number")
    except ValueError:
        next(generator)
    next(generator, None)
    loop.close()
    return seen


@story("a handler that fails itself is logged and the loop goes on")
def _():
    seen = []

    def broken(loop, context):
        raise ValueError("in the handler")

    def setup(loop):
        loop.set_exception_handler(broken)
        loop.call_soon(fail)
        loop.call_soon(seen.append, "went on")
        loop.call_soon(loop.stop)

    logging.getLogger("asyncio").disabled = True
    try:
        run(setup)
    finally:
        logging.getLogger("asyncio").disabled = False
    return seen


@story("a handler's SystemExit has asyncio's line as well")
def _():
    def leave(loop, context):
        raise SystemExit(context["message"].partition(" at ")[0])

    error = run(lambda loop: (loop.set_exception_handler(leave), loop.call_soon(fail)))
    frames = traceback.extract_tb(error.__traceback__)
    return error.code, [(one.name, one.line, one.colno, one.end_colno) for one in frames]


@story("SystemExit ends the loop")
def _():
    def leave():
        raise SystemExit(3)

    error = run(lambda loop: loop.call_soon(leave))
    return type(error), error.code, [frame.name for frame in traceback.extract_tb(error.__traceback__)]


@story("KeyboardInterrupt ends the loop")
def _():
    def interrupt():
        raise KeyboardInterrupt

    error = run(lambda loop: loop.call_soon(interrupt))
    return type(error), [frame.name for frame in traceback.extract_tb(error.__traceback__)]


@story("other BaseExceptions go to the exception handler")
def _():
    class Unusual(BaseException):
        pass

    def raise_it():
        raise Unusual

    (context,) = contexts_of(lambda loop: loop.call_soon(raise_it))
    return type(context["exception"]).__name__


@story("a callback runs in the context it was given")
def _():
    variable = contextvars.ContextVar("variable", default="outside")
    context = contextvars.copy_context()
    context.run(variable.set, "inside")
    seen = []

    def setup(loop):
        loop.call_soon(lambda: (seen.append(variable.get()), variable.set("changed")), context=context)
        loop.call_soon(lambda: seen.append(variable.get()))
        loop.call_soon(lambda: seen.append(variable.get()), context=context)
        loop.call_soon(loop.stop)

    run(setup)
    return seen, variable.get()


@story("a callback whose context is entered already is not run, and the loop goes on")
def _():
    context = contextvars.copy_context()
    seen = []

    def setup(loop):
        loop.set_exception_handler(lambda _loop, _told: None)
        loop.call_soon(seen.append, "no", context=context)
        loop.call_soon(seen.append, "went on", context=contextvars.Context())
        loop.call_soon(loop.stop, context=contextvars.Context())

    logging.getLogger("asyncio").disabled = True
    try:
        context.run(run, setup)
    finally:
        logging.getLogger("asyncio").disabled = False
    return seen


@story("a subclass of Handle may override _run and call the original")
def _():
    seen = []

    class Loud(asyncio.Handle):
        def _run(self):
            seen.append("before")
            super()._run()
            seen.append("after")

    def setup(loop):
        loop._ready.append(Loud(seen.append, ("callback",), loop))
        loop.call_soon(loop.stop)

    run(setup)
    return seen


@story("a subclass of Handle with a __dict__ of its own")
def _():
    class WithDict(asyncio.Handle):
        pass

    seen = []

    def setup(loop):
        handle = WithDict(seen.append, ("ran",), loop)
        handle.note = "mine"
        loop._ready.append(handle)
        loop.call_soon(loop.stop)

    run(setup)
    return seen


@story("timers run in the order of their times")
def _():
    seen = []

    def setup(loop):
        now = loop.time()
        for delay in (0.003, 0.001, 0.002):
            loop.call_at(now + delay, seen.append, delay)
        loop.call_at(now + 0.01, loop.stop)

    run(setup)
    return seen


@story("cancelled handles do not run")
def _():
    seen = []

    def setup(loop):
        loop.call_soon(seen.append, "no").cancel()
        loop.call_later(0.001, seen.append, "no").cancel()
        loop.call_later(0.005, loop.stop)

    run(setup)
    return seen


@story("a callback may cancel its own handle, also when it fails then")
def _():
    handles, seen = [], []

    def cancel_own():
        handles[0].cancel()
        seen.append(handles[0].cancelled())

    def cancel_and_fail():
        handles[1].cancel()
        fail()

    def setup(loop):
        loop.set_exception_handler(lambda _loop, context: seen.append(context["message"]))
        handles.append(loop.call_soon(cancel_own))
        handles.append(loop.call_soon(cancel_and_fail))
        loop.call_soon(loop.stop)

    run(setup)
    return seen


@story("_run answers None and takes no arguments")
def _():
    loop = asyncio.new_event_loop()
    seen = []
    handle = asyncio.Handle(seen.append, (1,), loop)
    answer = handle._run()
    try:
        handle._run("more")
    except TypeError:
        seen.append("TypeError")
    loop.close()
    return answer, seen


@story("_run of an object that is no Handle is a TypeError or AttributeError")
def _():
    try:
        asyncio.Handle._run(object())
    except (TypeError, AttributeError) as error:
        return "refused", error is not None
    return "taken"


@story("a callback and its arguments are freed after the run")
def _():
    class Thing:
        def call(self):
            pass

    thing = Thing()
    gone = weakref.ref(thing)

    def setup(loop):
        nonlocal thing
        loop.call_soon(thing.call)
        loop.call_soon(loop.stop)
        thing = None

    run(setup)
    gc.collect()
    return gone() is None


@story("a loop runs again after it was stopped")
def _():
    loop = asyncio.new_event_loop()
    seen = []
    for number in (1, 2, 3):
        loop.call_soon(seen.append, number)
        loop.call_soon(loop.stop)
        loop.run_forever()
    loop.close()
    return seen


@story("a loop does not run inside itself")
def _():
    seen = []

    def setup(loop):
        def again():
            try:
                loop.run_forever()
            except RuntimeError as error:
                seen.append(str(error))
            loop.stop()

        loop.call_soon(again)

    run(setup)
    return seen


@story("a loop does not run inside another one")
def _():
    seen = []
    other = asyncio.new_event_loop()

    def setup(loop):
        def again():
            other.call_soon(other.stop)
            try:
                other.run_forever()
            except RuntimeError as error:
                seen.append(str(error))
            loop.stop()

        loop.call_soon(again)

    run(setup)
    other.close()
    return seen


@story("a closed loop does not run")
def _():
    loop = asyncio.new_event_loop()
    loop.close()
    try:
        loop.run_forever()
    except RuntimeError as error:
        return str(error)
    return None


@story("loops run in threads side by side")
def _():
    results = {}

    def work(number):
        results[number] = asyncio.run(add(number, 1))

    async def add(left, right):
        await asyncio.sleep(0.001)
        return left + right

    threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(results.items())


@story("streams, executors and subprocess pipes work together")
def _():
    async def main():
        async def serve(reader, writer):
            writer.write((await reader.readline()).upper())
            await writer.drain()
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            host, port = server.sockets[0].getsockname()
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(b"hello\n")
            answer = await reader.readline()
            writer.close()
            await writer.wait_closed()
        process = await asyncio.create_subprocess_exec("echo", "child", stdout=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
        return answer, output, await asyncio.to_thread(socket.gethostname) != ""

    return asyncio.run(main())


@story("an exception of a task keeps its traceback")
def _():
    async def inner():
        await asyncio.sleep(0)
        fail()

    async def main():
        await inner()

    try:
        asyncio.run(main())
    except LookupError as error:
        return [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    return None


@story("debug mode tells of slow callbacks")
def _():
    records = []

    class Keep(logging.Handler):
        def emit(self, record):
            records.append(record.getMessage().split(" took ")[0].split(" at 0x")[0])

    def setup(loop):
        loop.slow_callback_duration = 0.001
        loop.call_soon(time.sleep, 0.01)
        loop.call_soon(loop.stop)

    logger = logging.getLogger("asyncio")
    keeper = Keep()
    logger.addHandler(keeper)
    try:
        run(setup, debug=True)
    finally:
        logger.removeHandler(keeper)
    return [record for record in records if "sleep" in record]


@story("a task that nobody awaits is told about")
def _():
    contexts = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: contexts.append(context))
        task = asyncio.ensure_future(failing())
        await asyncio.sleep(0.001)
        del task
        gc.collect()

    async def failing():
        fail()

    asyncio.run(main())
    return [(context["message"], repr(context["exception"])) for context in contexts]


@story("asyncio.run is cancelled by Control-C")
def _():
    async def main():
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)

    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        return "interrupted"
    return None


@story("asynchronous generators are closed at the end")
def _():
    seen = []

    async def numbers():
        try:
            yield 1
            yield 2
        finally:
            seen.append("closed")

    async def main():
        async for number in numbers():
            seen.append(number)
            break

    asyncio.run(main())
    gc.collect()
    return seen


@story("timeouts cancel")
def _():
    async def main():
        try:
            async with asyncio.timeout(0.001):
                await asyncio.sleep(60)
        except TimeoutError:
            return "timed out"

    return asyncio.run(main())


if sys.version_info >= (3, 12):

    @story("eager tasks run at once")
    def _():
        seen = []

        async def work():
            seen.append("inside")

        async def main():
            asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
            task = asyncio.create_task(work())
            seen.append(("done", task.done()))
            await task

        asyncio.run(main())
        return seen


@pytest.mark.parametrize("sentence", STORIES, ids=[sentence.replace(" ", "-") for sentence in STORIES])
def test_it_is_the_same(watch, sentence):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = STORIES[sentence]()
        with watch.installed():
            watched = STORIES[sentence]()
        afterwards = STORIES[sentence]()
    assert watched == plain
    assert afterwards == plain

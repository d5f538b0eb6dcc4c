"""What the search for lost wake-ups relies on: a suspended coroutine shows no reference that it has not."""

from __future__ import annotations

import gc
import sys
import types

import pytest


class Thing:
    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass

    def __getitem__(self, key):
        return key

    def takes(self, *things):
        return things


@types.coroutine
def suspended():
    yield


def takes(*things, **named):
    return things, named


async def as_an_argument(thing):
    takes(thing, await suspended())


async def as_the_object_of_a_method(thing):
    thing.takes(thing, await suspended())


async def in_a_display(thing):
    return [thing, {1: thing, 2: await suspended()}]


async def in_a_block(thing):
    async with thing:
        await suspended()


async def under_two_names(thing):
    other = thing
    takes(other, thing, await suspended(), named=other)


async def in_an_expression(thing):
    return thing and thing[await suspended()]


async def in_a_comprehension(thing):
    return [(thing, await suspended()) for _ in range(3)]


async def in_a_closure(thing):
    def knows():
        return thing

    takes(knows, thing, await suspended())


async def as_a_target(thing):
    thing.attribute = await suspended()


def shown(coroutine, thing):
    """References to it of what the coroutine refers to, over three steps."""
    seen, left = {id(coroutine): coroutine}, [coroutine]
    for one in left:
        for held in gc.get_referents(one):
            if id(held) not in seen and type(held) is not dict and held is not thing:
                seen[id(held)] = held
                left += [held] if len(left) < 100 and isinstance(held, SEARCHED) else []
    return sum(held is thing for one in left for held in gc.get_referents(one))


def counted(alone):
    """References to the only one in a list."""
    return next(map(sys.getrefcount, alone))


NAMES = 1
"""That the test has for it, more than for what is compared."""
SEARCHED = (types.CoroutineType, types.FunctionType, types.CellType, tuple, list, types.MethodType)


@pytest.mark.parametrize("times", [1, 200], ids=["at first", "when it is warm"])
@pytest.mark.parametrize(
    "story",
    [
        as_an_argument,
        as_the_object_of_a_method,
        in_a_display,
        in_a_block,
        under_two_names,
        in_an_expression,
        in_a_comprehension,
        in_a_closure,
        as_a_target,
    ],
)
def test_no_more_references_are_shown_than_there_are(story, times):
    for _ in range(times):
        thing = Thing()
        coroutine = story(thing)
        coroutine.send(None)
        held, alone = counted([thing]), counted([object()])
        assert shown(coroutine, thing) == held - alone - NAMES
        coroutine.close()

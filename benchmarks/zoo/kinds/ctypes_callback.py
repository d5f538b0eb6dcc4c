"""A library in C, called by ctypes, calls back into Python, which blocks."""

from __future__ import annotations

import ctypes
import time

from zoo.stage import measured, run

EXPECT = {"cause": ["sleep"]}
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))


@COMPARE
def compare(left, right):
    time.sleep(0.02)  # <- culprit
    return left[0] - right[0]


def rank():
    numbers = (ctypes.c_int * 8)(8, 3, 6, 1, 7, 2, 5, 4)
    ctypes.CDLL(None).qsort(numbers, len(numbers), ctypes.sizeof(ctypes.c_int), compare)


async def handler():
    with measured():
        rank()


if __name__ == "__main__":
    run(handler)

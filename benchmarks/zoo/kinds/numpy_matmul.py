"""A handler multiplies matrices of numpy; BLAS does it, on threads of its own as well."""

from __future__ import annotations

import numpy as np
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"], "needs": ["numpy"], "advice": ["to_thread"]}


def scores(weights, rows):
    return weights @ rows  # <- culprit


async def handler():
    with measured():
        scores(WEIGHTS, ROWS)


if __name__ == "__main__":
    WEIGHTS = np.ones((1000, 1000))
    ROWS = np.ones((1000, 2 * sized(lambda count: scores(WEIGHTS, np.ones((1000, count))), 0.35, start=50)))
    run(handler)

"""A handler looks for routes in a graph of nx."""

from __future__ import annotations

import networkx as nx
from zoo.stage import measured, run, sized

EXPECT = {
    "cause": ["cpu"],
    "needs": ["networkx"],
    "advice": ["process", "to_thread", "sleep(0)", "rustworkx", "igraph"],
}


def lines_of(count):
    return nx.cycle_graph(count)


def lengths(lines):
    return nx.single_source_dijkstra_path_length(lines, 0)  # <- culprit


async def handler():
    with measured():
        lengths(LINES)


if __name__ == "__main__":
    LINES = lines_of(sized(lambda count: lengths(lines_of(count)), 0.5, start=1000))
    run(handler)

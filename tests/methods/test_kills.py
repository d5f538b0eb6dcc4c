"""Programs killed at any moment: what was open, as the files of calls say, is what the program itself noted.

`make method-kills METHOD_KILLS=1000` kills more of them.
"""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from loopcanary.flight.beside import calls_format as layout
from loopcanary.flight.beside.calls import AT_NO_WORK
from loopcanary.model.method_map import METHODS, records_in, remove_beside

native = pytest.importorskip("loopcanary._native", reason="needs the C core")
pytestmark = pytest.mark.native

KILLS = int(os.environ.get("LOOPCANARY_METHOD_KILLS") or 20)
AT_ONCE = 4
GIVES_UP_S = 280
BEGIN = """
import mmap, os, random, sys
import loopcanary

chance = random.Random(int(sys.argv[1]))
with open(sys.argv[2], "w+b") as file:
    file.truncate(4096)
    log = mmap.mmap(file.fileno(), 4096)
loopcanary.install(methods=["."], methods_ring="32KiB", console="off")
"""
STEP = """
def walk{number}(depth):
    log[depth + 1] = {number}
    log[0] = depth + 1
    try:
        if depth < 20 and chance.random() < 0.6:
            chance.choice(WALKS)(depth + 1)
        if chance.random() < 0.2:
            raise ValueError
        for inner in wait{number}(depth + 1):
            if inner == chance.randrange(4):
                break
    except ValueError:
        pass
    finally:
        log[0] = depth

def wait{number}(depth):
    log[depth + 1] = 100 + {number}
    for step in range(3):
        log[0] = depth + 1
        int(step)
        log[0] = depth
        yield step
        log[depth + 1] = 100 + {number}
"""
END = """
WALKS = (walk1, walk2, walk3)

def main():
    log[1] = 0
    log[0] = 1
    for path in open("/proc/self/maps"):
        if ".calls-0" in path:
            os.write(1, path.split()[-1].encode() + b"\\n")
    while True:
        chance.choice(WALKS)(1)
        os.write(1, b".")

main()
"""
SCRIPT = BEGIN + "".join(STEP.format(number=number) for number in (1, 2, 3)) + END


class Killed:
    """A program that calls and notes at random, until it is killed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._log = folder / f"log-{seed}"
        command = (sys.executable, "app.py", str(seed), str(self._log))
        clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
        # A store of its own: in a common one, the start of the next takes in what the killed one left.
        # Without a keeper, which would take in what is read here.
        own = {"LOOPCANARY_STORE": str(folder / f"store-{seed}"), "LOOPCANARY_KEEPER": "0"}
        environment = {**clean, **own}
        self._process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE)
        self._turns = random.Random(seed).randrange(1, 400)

    def kill(self) -> tuple[list[str], list[str], list[str]]:
        """Open functions, outermost first: as the program noted them, as the stack of open calls has them, as
        the tree of the words has them."""
        with self._process as process:
            assert process.stdout is not None
            path = process.stdout.readline().decode().strip()
            process.stdout.read(self._turns)
            process.kill()
            process.communicate(timeout=GIVES_UP_S)
        noted = self._log.read_bytes()
        flight = path.removesuffix(".calls-0")
        content, names = Path(path).read_bytes(), named(Path(flight + METHODS))
        remove_beside(flight)
        Path(flight).unlink()
        header = layout.HEADER.read(content)
        opened = content[layout.OPEN_OFFSET :][: header["depth"] * layout.OPEN.size]
        return (
            [function_of(number) for number in noted[1 : noted[0] + 1]],
            [names[number] for number, _ in struct.iter_unpack("<QQ", opened)],
            [names[number] for number in open_in_tree(content, header, opened)],
        )


def function_of(number: int) -> str:
    return "main" if number == 0 else f"walk{number}" if number < 100 else f"wait{number - 100}"


def named(path: Path) -> dict[int, str]:
    return {method.number: method.qualname for method in records_in(path.read_bytes())}


def open_in_tree(content: bytes, header: dict[str, int], opened: bytes) -> list[int]:
    ring = struct.unpack_from(f"<{header['words']}Q", content, layout.WORDS_OFFSET)
    first = max(0, header["written"] - header["words"] + 1)  # the cell before may be overwritten already

    def read(number: int, count: int) -> bytes:
        return struct.pack(f"<{count}Q", *(ring[at % len(ring)] for at in range(number, number + count)))

    last = ring[(header["written"] - 1) % len(ring)] & ((1 << layout.TIME_BITS) - 1)
    rows, *_ = native.call_tree(
        read,
        first,
        header["written"],
        first == 0,
        opened,
        header["depth"],
        (0, last + 1),
        1 << 20,
        AT_NO_WORK,
    )
    return [row[1] for row in rows if row[5]]


def agree(noted: list[str], found: list[str]) -> bool:
    """The program notes a call after its begin, and its end before it: it may be one behind."""
    return noted in (found, found[:-1])


def test_open_calls_of_a_killed_program_are_those_it_noted(tmp_path):
    (tmp_path / "app.py").write_text(SCRIPT)
    for first in range(0, KILLS, AT_ONCE):
        programs = [Killed(tmp_path, seed) for seed in range(first, min(first + AT_ONCE, KILLS))]
        for seed, program in enumerate(programs, first):
            noted, opened, tree = program.kill()
            assert noted[0] == "main"
            assert agree(noted, opened), (seed, noted, opened)
            assert agree(noted, tree), (seed, noted, tree)

"""`make kills KILLS=1000`, or in benchmarks/ `python -m kills`: kills watched programs at any moment.

By turns on asyncio, uvloop, gevent and trio. A third of the kills come within milliseconds of a block's end:
there a stall is on its way from the flight file to the store, and could be lost, or come twice.

What must be in the report of each program, exactly once, with the function that blocked:

- native engine: the stall that it was killed in, as "killed", and each stall before it. `--margin`: how long
  after the threshold the watchdog may take until it has looked.
- portable engine: each stall that was over `--kept` before the kill. It leaves nothing else behind.

`--keeper`: a keeper takes the stalls of the programs, and is itself killed at any moment, several times in
the life of each. Then no stall may be told twice on the console, either.

1 if something was missing, twice or wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from zoo.loops import LOOP

from kills.judge import WITHOUT_SAMPLE, Life, Margins, Verdict, blocks_of, judge
from kills.keepers import KeeperKiller

LOOPS = {"native": ("asyncio", "uvloop", "gevent", "trio"), "portable": ("asyncio", "trio")}
LIVES_S = (0.05, 3.0)
AT_AN_END = 1 / 3
LOT = 10
"""Programs one after the other with one store: each start takes in what the one before left."""
JUST_AFTER_S = 0.01
GIVES_UP_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """One program to be killed."""

    number: int
    loop: str
    engine: str
    seed: int
    keeper: bool
    """Whether a keeper takes its stalls, and is killed, too."""


def main() -> int:
    """Kills, and says what was found."""
    asked = _arguments().parse_args()
    margins = {
        "native": Margins(noticed_ns=int(asked.margin * 1e6)),
        "portable": Margins(noticed_ns=int(asked.margin * 1e6), kept_ns=int(asked.kept * 1e6)),
    }
    kills = list(_plan(asked))
    checked: dict[str, Counter[str]] = {f"{kill.engine}, {kill.loop}": Counter() for kill in kills}
    misses = 0
    lots = [kills[first : first + LOT] for first in range(0, len(kills), LOT)]
    with ThreadPoolExecutor(asked.at_once) as pool:
        for lot, verdicts in zip(lots, pool.map(lambda lot: _play(lot, margins), lots), strict=True):
            for kill, verdict in zip(lot, verdicts, strict=True):
                checked[f"{kill.engine}, {kill.loop}"] += Counter(kills=1) + verdict.checked
                misses += len(verdict.misses)
                for line in verdict.misses:
                    print(f"MISS (seed {kill.seed}) {kill.engine}, {kill.loop}: {line}", flush=True)
    for name, counts in checked.items():
        print(f"{name}: " + ", ".join(f"{count} {what}" for what, count in counts.items()))
    print(f"kills: {len(kills)}, stalls: {_sum(checked)}, misses: {misses}")
    return 1 if misses else 0


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kills", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--at-once", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--engine", choices=LOOPS, action="append", help="only this one")
    parser.add_argument("--loop", choices=LOOPS["native"], action="append", help="only this one")
    parser.add_argument("--keeper", action="store_true", help="kill keepers, too; native engine only")
    parser.add_argument("--margin", type=float, default=50.0, metavar="MS")
    parser.add_argument("--kept", type=float, default=1_000.0, metavar="MS")
    parser.add_argument("--seed", type=int, default=0, help="of the first; the next has the next")
    return parser


def _plan(asked: argparse.Namespace) -> Iterator[Kill]:
    """Four of five kills for the native engine, by turns on its loops."""
    sides = [
        (engine, loop)
        for engine, times in (("native", 2), ("portable", 1))
        for loop in LOOPS[engine] * times
        if engine in (["native"] if asked.keeper else asked.engine or LOOPS)
        and loop in (asked.loop or LOOPS[engine])
    ]
    for number in range(asked.kills):
        engine, loop = sides[number % len(sides)]
        yield Kill(number=number, loop=loop, engine=engine, seed=asked.seed + number, keeper=asked.keeper)


def _sum(checked: dict[str, Counter[str]]) -> int:
    apart = ("kills", "keepers killed", WITHOUT_SAMPLE)
    return sum(count for counts in checked.values() for what, count in counts.items() if what not in apart)


def _play(lot: Sequence[Kill], margins: dict[str, Margins]) -> list[Verdict]:
    with tempfile.TemporaryDirectory(prefix="loopcanary-kills-") as folder:
        lives = [_live_and_die(kill, Path(folder)) for kill in lot]
        stalls = _stalls(Path(folder))
    return [
        judge(life, [stall for stall in stalls if stall["pid"] == pid], margins[kill.engine])
        for kill, (pid, life) in zip(lot, lives, strict=True)
    ]


def _live_and_die(kill: Kill, folder: Path) -> tuple[int, Life]:
    """Its process id and its life."""
    store = folder / "store"
    quiet = [] if kill.keeper else ["--quiet"]
    words = ["run", *quiet, "--store", str(store), "-m", "kills.victim", str(kill.seed)]
    killer = KeeperKiller(store, kill.seed) if kill.keeper else nullcontext()
    with tempfile.TemporaryFile("w+") as console:
        with (
            killer,
            subprocess.Popen(
                [sys.executable, "-m", "loopcanary", *words],
                env=_environment(kill),
                stdout=subprocess.PIPE,
                stderr=console if kill.keeper else None,
                text=True,
            ) as program,
        ):
            assert program.stdout is not None
            said = [_line(program.stdout)]
            said += _until_due(random.Random(kill.seed), program.stdout)
            killed_ns, wall_ns = time.monotonic_ns(), time.time_ns()
            program.send_signal(signal.SIGKILL)
            said += [json.loads(line) for line in program.stdout]
            if program.wait(GIVES_UP_S) != -signal.SIGKILL:
                raise RuntimeError(f"{kill}: ended by itself, {program.returncode}")
        console.seek(0)
        told = tuple(re.findall(r"scene (block \d+)", console.read()))
    keepers = killer.kills if isinstance(killer, KeeperKiller) else 0
    blocks, wall_ns = blocks_of(said), wall_ns - killed_ns
    return program.pid, Life(blocks=blocks, killed_ns=killed_ns, wall_ns=wall_ns, told=told, keepers=keepers)


def _until_due(chance: random.Random, lines: IO[str]) -> list[Any]:
    """Waits until the kill is due; what the program said meanwhile."""
    if chance.random() >= AT_AN_END:
        time.sleep(chance.uniform(*LIVES_S))
        return []
    said: list[Any] = []
    for _ in range(chance.randint(1, 5)):
        said.append(_line(lines))
        while said[-1][0] != "end":
            said.append(_line(lines))
    time.sleep(chance.uniform(0, JUST_AFTER_S))
    return said


def _line(lines: IO[str]) -> Any:
    line = lines.readline()
    if not line:
        raise RuntimeError("the program ended by itself")
    return json.loads(line)


def _environment(kill: Kill) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    return clean | {
        LOOP: kill.loop,
        "LOOPCANARY_ENGINE": kill.engine,
        "LOOPCANARY_STALLS_PER_MINUTE": "100000",
        "LOOPCANARY_KEEPER": str(int(kill.keeper)),
        "PYTHONPATH": str(Path(__file__).resolve().parents[1]),
    }


def _stalls(folder: Path) -> list[dict[str, Any]]:
    """Of the report, as people ask for it."""
    words = ["report", "--store", str(folder / "store"), "--format", "json", "--limit", "0"]
    done = subprocess.run(
        [sys.executable, "-m", "loopcanary", *words], capture_output=True, check=False, timeout=GIVES_UP_S
    )
    return json.loads(done.stdout)["stalls"] if done.stdout else []


if __name__ == "__main__":
    sys.exit(main())

"""`loopcanary health`: whether every watched loop makes progress, for probes that run a command."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import click

from loopcanary.cli.opening import store_option
from loopcanary.cli.param_types import WORD, duration_of, number
from loopcanary.cli.refusals import refuse
from loopcanary.model.config import HANG_NS
from loopcanary.model.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loopcanary.model.live import LoopProgress, ProgramProgress

_DEFAULT = "5s"
_UNHEALTHY = 1
_NAMES_MAX = 6
_HANGS = {
    "boot-hang": "an import hangs: it has waited in one call for",
    "exit-hang": "it does not end: the whole process has waited for",
}


@click.command(short_help="Check that every watched loop makes progress, for liveness probes.")
@click.argument("pid", type=number(int, 1), metavar="[PID]", required=False)
@click.option("--name", type=WORD, metavar="TEXT", help="Only programs of this name.")
@click.option(
    "--limit",
    type=WORD,
    metavar="DURATION",
    default=_DEFAULT,
    help=f"Longest allowed time between two waits for events. Default: {_DEFAULT}.",
)
@click.option("--deadlocks", is_flag=True, help="Also exit with 1 if any tasks wait for each other.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Default: text.")
@click.option("--listen", type=WORD, metavar="[HOST:]PORT", help="Answer by HTTP until Ctrl-C.")
@store_option
def command(
    *,
    pid: int | None,
    name: str | None,
    limit: str,
    deadlocks: bool,
    form: str,
    listen: str | None,
    store: Path | None,
) -> int:
    """Check that every watched loop makes progress: in all your programs, or in one.

    Exits with 0 if each loop waits for events, or has done so in the last 5 s (--limit). Exits with 1 if a
    loop has not, if a program's main task waits in a deadlock, if a program is stopped by a signal, or if no
    such program is watched.
    """
    from loopcanary.assembly.health import programs

    limit_ns = duration_of(limit, "--limit")
    look = partial(programs, () if store is None else (store,), pid=pid, name=name)
    if listen is not None:
        from loopcanary.cli.health_endpoint import serve

        return serve(
            listen,
            lambda asked: _answer(
                look(), limit_ns if asked is None else duration_of(asked, "--limit"), deadlocks
            ),
        )
    found = look()
    is_healthy, answer = _answer(found, limit_ns, deadlocks)
    if form == "json":
        click.echo(answer)
    elif found:
        click.echo("\n".join(_line(one, limit_ns) for one in found))
    if not found:
        refuse(_nothing(pid, name))
    return 0 if is_healthy else _UNHEALTHY


def _answer(found: Sequence[ProgramProgress], limit_ns: int, deadlocks: bool) -> tuple[bool, str]:
    """Whether every loop makes progress, and the programs as JSON."""
    is_healthy = bool(found) and all(one.is_healthy(limit_ns, deadlocks=deadlocks) for one in found)
    programs = [_as_json(one, limit_ns, deadlocks) for one in found]
    return is_healthy, json.dumps({"programs": programs}, indent=1)


def _nothing(pid: int | None, name: str | None) -> str:
    if pid is not None:
        which = f"process {pid} is not watched, does not run, or belongs to another user"
    else:
        which = f"none of your programs {'' if name is None else f'named {name!r} '}is watched now"
    return (
        f"{which}: start one with `loopcanary run`, or name the store that has its flight files with --store"
    )


def _line(one: ProgramProgress, limit_ns: int) -> str:
    from loopcanary.words.text import count_of, printable

    who = f"{printable(one.name, 100)} (pid {one.pid})"
    if one.is_stopped:
        return f"{who}: stopped by a signal"
    if stuck := one.stuck(limit_ns):
        return f"{who}: {'; '.join(map(_stuck_words, stuck))}"
    if one.hang is not None:
        return (
            f"{who}: {_HANGS[one.hang.value]} {format_duration(one.hang_ns)}: `loopcanary report` says where"
        )
    if one.deadlock:
        main = ", and the main task for them" if one.has_dead_main else ""
        names = ", ".join(printable(name, 60) for name in one.deadlock[:_NAMES_MAX])
        return f"{who}: {count_of(len(one.deadlock), 'task')} wait for each other{main}: {names}"
    if not one.loops:
        return f"{who}: no loop runs"
    busiest = max(one.loops, key=lambda loop: loop.busy_ns)
    if busiest.busy_ns >= HANG_NS:
        return f"{who}: {_stuck_words(busiest)}; the limit is {format_duration(limit_ns)}"
    return f"{who}: {'the loop makes' if len(one.loops) == 1 else f'{len(one.loops)} loops make'} progress"


def _stuck_words(loop: LoopProgress) -> str:
    from loopcanary.words.text import printable

    inside = f", in {printable(loop.callback, 100)}" if loop.callback else ""
    where = f"{printable(loop.thread, 60)} ({printable(loop.kind, 20)})"
    return f"{where} has not waited for events for {format_duration(loop.busy_ns)}{inside}"


def _as_json(one: ProgramProgress, limit_ns: int, deadlocks: bool) -> dict[str, object]:
    stuck = one.stuck(limit_ns)
    return {
        "name": one.name,
        "pid": one.pid,
        "healthy": one.is_healthy(limit_ns, deadlocks=deadlocks),
        "stopped": one.is_stopped,
        "hang": None
        if one.hang is None
        else {"kind": one.hang.value, "duration_ms": one.hang_ns / 1_000_000},
        "deadlock": list(one.deadlock),
        "loops": [
            {
                "thread": loop.thread,
                "kind": loop.kind,
                "healthy": loop not in stuck,
                "turn_ms": loop.busy_ns / 1_000_000,
                "callback": loop.callback,
            }
            for loop in one.loops
        ],
    }

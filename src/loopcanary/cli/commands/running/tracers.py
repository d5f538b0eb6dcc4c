"""`loopcanary tracers`: the tracers of a running program, started and stopped."""

from __future__ import annotations

import click

from loopcanary.cli.refusals import BAD_USE, NOTHING_FOUND, refuse
from loopcanary.cli.words import Number, Word
from loopcanary.model.outside import Unseen

_TIMEOUT_S = 10.0


@click.command(short_help="List the tracers of a running program; stop and start them.")
@click.argument("pid", type=Number(int, 1), metavar="PID")
@click.option("--stop", multiple=True, metavar="NAME", type=Word(), help="Stop this one; `all`: all.")
@click.option("--start", multiple=True, metavar="NAME", type=Word(), help="Start this one; `all`: all.")
def command(pid: int, stop: tuple[str, ...], start: tuple[str, ...]) -> int:
    """List the tracers of a running program: what each does, and how long its steps held up the program.

    With --stop or --start, have it stop or start some first; each may be given several times. A tracer that
    is stopped takes back what it has put into the program. The program must be watched by loopcanary.
    """
    from loopcanary.assembly.tracing.asking import tracers_of
    from loopcanary.model.figures.tracers import TracerStep
    from loopcanary.words.lives import tracer_words
    from loopcanary.words.text import printable

    found = tracers_of(pid, {TracerStep.STOP: stop, TracerStep.START: start}, _TIMEOUT_S)
    if isinstance(found, Unseen):
        refuse(found.why)
        return BAD_USE if found.is_refused else NOTHING_FOUND
    width = max((len(printable(one.name)) for one in found.tracers), default=0)
    for one in found.tracers:
        click.echo(f"{printable(one.name):<{width}}  {tracer_words(one)}")
    if not found.tracers:
        click.echo(
            f"no tracer works in process {pid}: one of frames, input or idle work begins with the first"
        )
    for name, why in found.refused.items():
        refuse(f"tracer {name}: {why}")
    return BAD_USE if found.refused else 0

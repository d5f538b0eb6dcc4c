"""`loopcanary dump`: what the threads and tasks of a process do now, seen from outside."""

from __future__ import annotations

import click

from loopcanary.cli.param_types import number
from loopcanary.cli.refusals import refuse_unseen


@click.command(short_help="Show what the threads of a running process do now.")
@click.argument("pid", type=number(int, 1), metavar="PID")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Default: text.")
@click.option("--tasks", is_flag=True, help="What the tasks of asyncio wait for, instead of threads.")
@click.option("--all", "everything", is_flag=True, help="All frames, and also threads that run no Python.")
def command(pid: int, form: str, tasks: bool, everything: bool) -> int:
    """Show what the threads of a running process do now: stacks, locks, GIL.

    Works for any process of yours on CPython 3.11 to 3.15, watched or not, even if it hangs. Its memory is
    read from outside: the process is not stopped, and no code runs in it.
    """
    from loopcanary.assembly.dump import look_at
    from loopcanary.model.outside import Unseen

    sight = look_at(pid, with_tasks=tasks)
    if isinstance(sight, Unseen):
        return refuse_unseen(sight)
    if form == "json":
        from loopcanary.report.dump import render_json

        click.echo(render_json(sight), nl=False)
    else:
        from loopcanary.cli.screen import Screen
        from loopcanary.report import text
        from loopcanary.report.dump import dump_document

        text.show(dump_document(sight, everything=everything), Screen())
    return 0

"""`loopcanary attach`: a program that runs already, watched from now on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from loopcanary.cli.options import given
from loopcanary.cli.param_types import WORD, duration_of, number
from loopcanary.cli.refusals import NOTHING_FOUND, refuse, refuse_unseen
from loopcanary.cli.settings import loaded, settings_options
from loopcanary.model.outside import Attached, Detached, Unseen
from loopcanary.words.commands import reading
from loopcanary.words.text import printable

_NS = 1_000_000_000


@click.command(short_help="Watch a program that already runs.")
@click.argument("pid", type=number(int, 1), metavar="PID")
@settings_options
@click.option("--stop", is_flag=True, help="Stop watching it, and undo every change in it.")
@click.option(
    "--timeout",
    metavar="DURATION",
    type=WORD,
    default="10s",
    help="Give up if the program does not respond within this time. Default: 10s.",
)
def command(pid: int, stop: bool, timeout: str, **settings: Any) -> int:
    """Watch a program that already runs; with --stop, stop watching it.

    The program must run on CPython 3.14 or later, and its main thread must be running Python code. If it
    hangs, `loopcanary dump PID` shows where. Each loop is watched from its next turn on.
    """
    from loopcanary.assembly.attach import attach, detach

    timeout_s = duration_of(timeout, "--timeout") / _NS
    if stop:
        if given(settings):
            raise click.UsageError("--stop takes no settings")
        detached = detach(pid, timeout_s)
        return _refuse(pid, detached) if isinstance(detached, Unseen) else _tell_detached(detached)
    attached = attach(pid, _checked(given(settings)), timeout_s)
    return _refuse(pid, attached) if isinstance(attached, Unseen) else _tell_attached(attached)


def _checked(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings as JSON can send them. ConfigError: they cannot be used."""
    loaded(settings)
    if "store" in settings:
        settings["store"] = str(Path(settings["store"]).absolute())
    return json.loads(json.dumps(settings))  # type: ignore[no-any-return]


def _refuse(pid: int, unseen: Unseen) -> int:
    return refuse_unseen(unseen, words=f"{unseen.why}. {_where_it_is(pid)}" if unseen.hangs else "")


def _where_it_is(pid: int) -> str:
    """A sentence about what the main thread does instead, and the command that shows more."""
    from loopcanary.assembly.dump import look_at
    from loopcanary.report.dump import doing_words, thread_words

    more = f"`loopcanary dump {pid}` shows where"
    sight = look_at(pid)
    if isinstance(sight, Unseen):
        return more
    threads = {thread.tid: thread for thread in sight.threads}
    main = threads.get(pid)
    return more if main is None else f"Its {thread_words(main)} {doing_words(main, threads)}: {more}"


def _tell_attached(attached: Attached) -> int:
    if attached.was_watched:
        click.echo(f"process {attached.pid} is already watched, with its own settings", err=True)
    elif attached.is_running:
        engine = printable(attached.engine, 60)
        click.echo(f"process {attached.pid} is watched now ({engine} engine)", err=True)
    else:
        click.echo(f"process {attached.pid} is watched as soon as it runs a loop", err=True)
    if attached.native_problem is not None:
        click.echo(
            "its Python cannot load the native engine, so the portable one watches, which sees less: "
            + printable(attached.native_problem, 300),
            err=True,
        )
    if attached.store:
        click.echo(reading("report", (Path(attached.store),)), err=True)
    return 0


def _tell_detached(detached: Detached) -> int:
    if not detached.was_watched:
        refuse(f"process {detached.pid} was not watched")
        return NOTHING_FOUND
    click.echo(f"process {detached.pid} is no longer watched", err=True)
    return 0

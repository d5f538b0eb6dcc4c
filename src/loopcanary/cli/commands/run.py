"""`loopcanary run`: a program as it is, watched.

Python is executed anew on the program, in this process: same process id, same exit status, same signals,
same sys.argv, nothing of the command line left in memory. The engine starts in it by its startup hook;
the settings travel in the environment.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, NoReturn

import click

from loopcanary.cli import refuse
from loopcanary.cli.program import hook_is_installed, interpreter_flags, obstacle, split, with_bootstrap
from loopcanary.cli.settings import given, loaded, settings_options


class _Run(click.Command):
    """Leaves everything from the program on alone: its options may look like ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Takes our options; the program goes to ctx.obj."""
        with_value = {
            name
            for option in self.params
            if isinstance(option, click.Option) and not option.is_flag
            for name in option.opts
        }
        ours, ctx.obj = split(args, with_value)
        return super().parse_args(ctx, ours)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "(SCRIPT | -m MODULE | -c CODE) [ARGS]..."]


def _later(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> None:
    """Better than to take what is not traced yet."""
    if value:
        raise click.UsageError(f"{param.opts[0]} is not there yet: it comes with a later version", ctx)


@click.command(cls=_Run)
@settings_options
@click.option("--methods", multiple=True, metavar="PACKAGE", expose_value=False, callback=_later, hidden=True)
@click.option(
    "--fail-on-stall",
    is_flag=True,
    default=None,
    help="Exit with 70 instead of 0 if there was a stall (in this process, not in children).",
)
@click.pass_obj
def command(program: list[str], /, **settings: Any) -> int:
    """Run a program and watch it; nothing in it needs to change.

    Same process, same exit status, same signals. Stalls are shown on stderr and stored for `loopcanary
    report`. Options come before the program; what follows it belongs to the program. LOOPCANARY=0 in the
    environment runs the program unwatched.
    """
    if not program:
        raise click.UsageError("nothing to run: name a script, -m MODULE or -c CODE")
    if not sys.executable:
        raise click.UsageError("Python does not know where its own executable is")
    words = [sys.executable, *interpreter_flags(), *program]
    start = _run_as_child if sys.platform == "win32" else _become
    if os.environ.get("LOOPCANARY") == "0":
        return start(words, dict(os.environ))
    if problem := obstacle():
        raise click.UsageError(problem)
    if settings["fail_on_stall"] and find_spec("loopcanary._native") is None:
        raise click.UsageError(
            "--fail-on-stall needs the native engine, which is not here: see loopcanary doctor"
        )
    environment = _environment(given(settings))
    return start(words, environment)


def _environment(settings: dict[str, Any]) -> dict[str, str]:
    """This environment with the settings in force, checked. Raises ConfigError and StoreError."""
    from loopcanary.config import settings_as_environment
    from loopcanary.reporters.whose_stderr import STDERR, own_stderr
    from loopcanary.store import locate

    config = loaded(settings)
    location = locate(config.store)
    if location.notice and (location.is_usable or config.quiet):  # else the program's process says it
        refuse(location.notice)
    # Absolute, so that the program and its children store in one place wherever they change to.
    place = location.folder.absolute() if location.is_usable else None
    config = replace(config, store=place, console=not config.quiet)
    environment = {**os.environ, **settings_as_environment(config)}
    environment |= {"LOOPCANARY": "1", "LOOPCANARY_RUN_PID": str(os.getpid())}
    environment[STDERR] = own_stderr()
    return environment if hook_is_installed() else with_bootstrap(environment)


def _become(words: list[str], environment: dict[str, str]) -> NoReturn:
    """Turns this process into the program."""
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None: closed
        stream.flush()
    os.execve(sys.executable, words, environment)  # noqa: S606 - the user's own program


def _run_as_child(words: list[str], environment: dict[str, str]) -> int:
    """Runs the program where exec starts another process and ends this one, which shells take for its end."""
    import subprocess

    return subprocess.call(words, env=environment)  # noqa: S603 - the user's own program

"""`loopcanary run`: a program as it is, watched.

Python is executed anew on the program, in this process: same process id, same exit status, same signals,
same sys.argv, nothing of the command line left in memory. The engine starts in it by its startup hook;
the settings travel in the environment. A plain line does not come here: see cli/program.py.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from loopcanary.cli.options import RUN_ONLY, given
from loopcanary.cli.program import UnfitProgramError, prepared, split, start
from loopcanary.cli.refusals import refuse
from loopcanary.cli.settings import loaded, settings_options


class _Run(click.Command):
    """Leaves the program's own words alone: its options may look like ours."""

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


@click.command(cls=_Run)
@partial(settings_options, more=RUN_ONLY)
@click.pass_obj
def command(program: list[str], /, **settings: Any) -> int:
    """Run a program and watch it; nothing in it needs to change.

    Same process, same exit status, same signals. Stalls are shown on stderr and stored for `loopcanary
    report`. Options come before the program; what follows it belongs to the program. LOOPCANARY=0 in the
    environment runs the program unwatched.
    """
    try:
        words, environment, notice = prepared(program, given(settings), loaded)
    except UnfitProgramError as error:
        raise click.UsageError(str(error)) from None
    if notice:
        refuse(notice)
    return start(words, environment)

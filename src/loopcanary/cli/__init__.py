"""The command line: `loopcanary COMMAND`.

`run` is waited for each time that a program starts, and programs start keepers: where their lines are
well-formed, they need neither click nor the other commands.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line.

    Args:
        arguments: what follows `loopcanary`; None: those of this process.

    Returns:
        The exit status: 0; 1 if nothing was found; 2 for bad use, after one line on stderr; `run` and the
        options `--fail-on-...` have more.
    """
    words = sys.argv[1:] if arguments is None else arguments
    if words and words[0] == "run":
        from loopcanary.cli.program import start_plain_line

        start_plain_line(words[1:])
    if len(words) == 3 and [*words[:2]] == ["keep", "--apart"]:
        from loopcanary.cli.aside import keep_apart

        return keep_apart(words[2])
    from loopcanary.cli.command_line import run_command

    return run_command(arguments)

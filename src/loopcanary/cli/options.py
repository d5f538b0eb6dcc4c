"""The options of commands that watch a program, as plain data: the one home of their names, values and help.

The click commands are made of these tables, and a plain line of `run` is read by them alone. Nothing large is
imported here.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


def text_problem(text: str) -> str | None:
    """What is wrong with an option's text: it may be empty, if a shell variable was not set."""
    return None if text.strip() else "it is empty"


def folder_problem(text: str) -> str | None:
    """What is wrong with a folder's path; the folder need not exist. An empty path would be the current
    folder."""
    if problem := text_problem(text):
        return problem
    if "://" in text:
        return (
            "it is a URL, not a folder; the URL of a webhook is a secret, which other users can read in a "
            "command line: put it into LOOPCANARY_WEBHOOK_URL or the file of webhook_file"
        )
    # Not pathlib's, which raises where a folder above may not be entered.
    return f"{text} is a file" if os.path.isfile(text) else None  # noqa: PTH113


class Option:
    """One option: with a value, which is called `metavar` or is one of `choices`, else a flag. `hidden`: for
    developers; the help does not name it."""

    __slots__ = ("choices", "help", "hidden", "metavar", "name", "problem", "repeats")

    def __init__(
        self,
        name: str,
        help_text: str,
        *,
        metavar: str | None = None,
        choices: Sequence[str] = (),
        repeats: bool = False,
        hidden: bool = False,
        problem: Callable[[str], str | None] = text_problem,
    ) -> None:
        self.name = name
        self.help = help_text
        self.metavar = metavar
        self.choices = choices
        self.repeats = repeats
        self.hidden = hidden
        self.problem = problem

    @property
    def key(self) -> str:
        """The option's name among the arguments of a command."""
        return self.name.removeprefix("--").replace("-", "_")

    @property
    def is_flag(self) -> bool:
        return self.metavar is None and not self.choices

    def takes(self, value: str) -> bool:
        """Whether the value is good, as far as that does not depend on other settings."""
        return value in self.choices if self.choices else self.problem(value) is None


SETTINGS = (
    Option("--threshold", "A longer callback is a stall. Default: 100ms.", metavar="DURATION"),
    Option(
        "--store",
        "Where stalls are stored. Default: .loopcanary in the program's current folder.",
        metavar="DIR",
        problem=folder_problem,
    ),
    Option("--name", "Name of the program in reports.", metavar="TEXT"),
    Option("--concern", "Package of your own code; may be repeated.", metavar="PACKAGE", repeats=True),
    Option("--only-concern", "Report only stalls with your own code in them."),
    Option(
        "--ignore",
        "Do not report this package, file glob or package:function; may be repeated.",
        metavar="WHAT",
        repeats=True,
    ),
    Option(
        "--methods",
        "Trace each call of this package's functions (`.`: of the program's own); may be repeated.",
        metavar="PACKAGE",
        repeats=True,
    ),
    Option(
        "--slow-method",
        "With --methods: report a longer stall as a slow method, with its calls. Default: 700ms.",
        metavar="DURATION",
    ),
    Option("--methods-ring", "Memory for the last calls of each thread.", metavar="SIZE", hidden=True),
    Option("--locks", "Find more deadlocks of tasks, and locks that are not released."),
    Option(
        "--engine",
        "How to watch. Default: auto (native where it works).",
        choices=("auto", "native", "portable"),
        hidden=True,
    ),
    Option("--no-children", "Do not watch child processes."),
    Option("--while-debugging", "Also record stalls under a debugger."),
    Option(
        "--notify",
        "Notify about hangs by bell, desktop or webhook; may be repeated.",
        metavar="WAY",
        repeats=True,
    ),
    Option("--log-file", "Append each stall to this file, as a line of JSON.", metavar="FILE"),
    Option("--quiet", "Print nothing while the program runs."),
)
"""The settings of `run` and `attach`, in the order of the help."""
RUN_ONLY = (
    Option(
        "--config", "Settings file. Default: the nearest loopcanary.toml or pyproject.toml.", metavar="FILE"
    ),
    Option("--startup", "Record how the program starts, with every import."),
    Option(
        "--windows",
        "Report a window that takes no input or paints nothing for this time, though its loop is healthy.",
        metavar="DURATION",
    ),
    Option("--sd-watchdog", "Feed systemd's watchdog while every loop makes progress."),
    Option(
        "--exit-when-hung",
        "End the process (children, too) by SIGABRT when one turn of a loop takes this long.",
        metavar="DURATION",
    ),
    Option(
        "--signals",
        "Record who sends these signals (TERM,ABRT), or a crash (SEGV,BUS), and all threads' stacks.",
        metavar="NAMES",
    ),
    Option(
        "--fail-on-stall",
        "Exit with 70 instead of 0 if there was a stall (in this process, not in children).",
    ),
)
"""The options of `run` alone: about a program's start and end."""


def given(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that were given, by the names of `config.load`."""
    found = {key: value for key, value in settings.items() if value not in (None, ())}
    # As the environment has them: `--notify bell,desktop` is `--notify bell --notify desktop`.
    found |= {key: ",".join(value) for key, value in found.items() if isinstance(value, tuple)}
    if found.pop("no_children", False):
        found["follow_children"] = False
    if found.pop("quiet", False):
        found["console"] = "off"
    return found

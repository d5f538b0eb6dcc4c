"""All commands, with examples of each: one module of `commands` each, loaded when it is called."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import click

from loopcanary.cli.refusals import NOTHING_FOUND, NotFoundError, reader_left, refuse

SECTIONS = {
    "Watch": ("run", "attach"),
    "Look": ("report", "show", "ui", "top", "dump", "methods", "health"),
    "Compare": ("diff", "ci"),
    "Send": ("export", "bundle", "import", "wrong"),
    "Care": ("keep", "doctor", "clean"),
}

EXAMPLES = {
    "run": (
        "loopcanary run app.py --port 8080",
        "loopcanary run --threshold 50ms -m uvicorn shop:app --workers 2",
    ),
    "attach": ("loopcanary attach 4711", "loopcanary attach --stop 4711"),
    "report": (
        "loopcanary report",
        "loopcanary report /srv/shop/.loopcanary --since 2h --cause lock",
        "loopcanary report --format html -o stalls.html",
    ),
    "show": ("loopcanary show 1", "loopcanary show 3:4a5385ab0398 --format markdown"),
    "ui": ("loopcanary ui", "loopcanary ui web/.loopcanary worker/.loopcanary --no-browser"),
    "top": ("loopcanary top", "loopcanary top --once --filter shop"),
    "dump": ("loopcanary dump 4711", "loopcanary dump --all 4711"),
    "methods": (
        "loopcanary methods 4711 --for 10s",
        "loopcanary methods 4711 shop --format speedscope -o calls.json",
    ),
    "health": ("loopcanary health", "loopcanary health --name worker --limit 30s"),
    "diff": (
        "loopcanary diff before/.loopcanary after/.loopcanary",
        "loopcanary diff --version-a 1.1 --version-b 1.2 --fail-on-worse",
    ),
    "ci": ("loopcanary ci -- python -m pytest", "loopcanary ci --store stalls -- ./load-test.sh"),
    "export": (
        "loopcanary export --format perfetto -o stalls.json",
        "loopcanary export --format csv --since 2h --cause lock",
    ),
    "bundle": (
        "loopcanary bundle --redact paths,hosts -o stalls.zip",
        "loopcanary bundle --since 1d --send https://stalls.example.org/in",
    ),
    "import": ("loopcanary import stalls.zip --store collected",),
    "wrong": ("loopcanary wrong 1",),
    "keep": (
        "loopcanary keep",
        "loopcanary keep /srv/shop/stalls /srv/jobs/stalls",
        "loopcanary keep --status",
    ),
    "doctor": ("loopcanary doctor",),
    "clean": ("loopcanary clean --older-than 7d", "loopcanary clean --bug 3:4a5385ab0398"),
}


def epilog(command: str) -> str:
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in EXAMPLES[command])])


COMMANDS = tuple(name for names in SECTIONS.values() for name in names)
_INTERRUPTED = 130  # 128 + SIGINT, as shells have it
_HELP_WIDTH = 110


class _Commands(click.Group):
    """Commands whose modules are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = "import_" if cmd_name == "import" else cmd_name  # a keyword
        command = import_module(f"loopcanary.cli.commands.{module}").command
        assert isinstance(command, click.Command)
        command.epilog = epilog(cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command. UsageError names the nearest one where there is none."""
        if not ctx.resilient_parsing and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            meant = f"; did you mean {near[0]}?" if near else "; `loopcanary --help` lists all commands"
            raise click.UsageError(f"there is no command {args[0]!r}{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands, section by section."""
        width = max(map(len, COMMANDS))
        for section, names in SECTIONS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            rows = [(name.ljust(width), one.get_short_help_str(limit=80)) for name, one in commands if one]
            with formatter.section(section):
                formatter.write_dl(rows)


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: ARG001
    if not value or ctx.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("loopcanary")
    except PackageNotFoundError:
        number = "(not installed: run from its sources)"
    click.echo(f"loopcanary {number}")
    ctx.exit()


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": _HELP_WIDTH},
    invoke_without_command=True,
)
@click.option(
    "--version",
    is_flag=True,
    callback=_show_version,
    expose_value=False,
    is_eager=True,
    help="Show the version.",
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """A flight recorder for event loops: sees every stall, names the line and the cause."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run_command(arguments: Sequence[str] | None) -> int:
    """Runs what follows `loopcanary` (None: in this process's own line). Returns the exit status."""
    _open_closed_streams()
    _keep_output_encodable()
    try:
        status = cli.main(args=arguments, prog_name="loopcanary", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        status = refuse(error.format_message())
        return NOTHING_FOUND if isinstance(error, NotFoundError) else status
    except click.Abort:
        return _INTERRUPTED
    except BrokenPipeError:
        return reader_left()
    except Exception as error:
        if not _is_for_people(error):
            raise
        return refuse(str(error))
    return status if isinstance(status, int) else 0


def _is_for_people(error: Exception) -> bool:
    """Whether the error says what happened and what to do: one of ours, whose module is loaded by then."""
    kinds = (
        ("loopcanary.store.errors", "StoreError"),
        ("loopcanary.config.files", "ConfigError"),
        ("loopcanary.exporters", "ExportError"),
        ("loopcanary.bundles.layout", "BundleError"),
    )
    found = [getattr(sys.modules.get(module), kind, None) for module, kind in kinds]
    return isinstance(error, tuple(kind for kind in found if kind is not None))


def _open_closed_streams() -> None:
    """A closed stream is not an error: it has no reader, or nothing to read."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - as long as the process


def _keep_output_encodable() -> None:
    """Shows as escapes what the terminal's encoding lacks, so that it does not end the report."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]

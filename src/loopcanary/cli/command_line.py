"""All commands: one module of `commands` each, loaded when it is called."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import click

from loopcanary.cli.overview import SECTIONS, epilog
from loopcanary.cli.refusals import NOTHING_FOUND, NotFoundError, reader_left, refuse

COMMANDS = tuple(name for names in SECTIONS.values() for name in names)
_MODULES = {"import": "import_"} | {
    name: f"running.{name}" for name in ("attach", "dump", "methods", "tracers")
}
"""Of commands whose names Python keeps for itself, and of those on one process."""
_INTERRUPTED = 130  # 128 + SIGINT, as shells have it
_HELP_WIDTH = 110


class _Commands(click.Group):
    """Commands whose modules are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """All names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"loopcanary.cli.commands.{_MODULES.get(cmd_name, cmd_name)}").command
        assert isinstance(command, click.Command)
        command.epilog = epilog(cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments begin with. UsageError, with the nearest name, if there is none."""
        if not ctx.resilient_parsing and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            meant = f"; did you mean {near[0]}?" if near else "; loopcanary --help lists them"
            raise click.UsageError(f"there is no command {args[0]!r}{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands by what they are for."""
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
    """Runs a command line: what follows `loopcanary`, None: that of this process. The exit status."""
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
    """Whether the error says what happened and what to do: one of ours, whose module is loaded then."""
    kinds = (
        ("loopcanary.store.errors", "StoreError"),
        ("loopcanary.config.errors", "ConfigError"),
        ("loopcanary.exporters.errors", "ExportError"),
        ("loopcanary.bundles.errors", "BundleError"),
        ("loopcanary.uploads.errors", "UploadError"),
    )
    found = [getattr(sys.modules.get(module), kind, None) for module, kind in kinds]
    return isinstance(error, tuple(kind for kind in found if kind is not None))


def _open_closed_streams() -> None:
    """One that is closed has no reader and nothing to read, which is no error."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - as long as the process


def _keep_output_encodable() -> None:
    """A name that the terminal's encoding lacks is shown as an escape; it must not end the report."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]

"""`loopcanary wrong`: a verdict that is not true, as a report for the authors of loopcanary."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from loopcanary.bundles.layout import ALL
from loopcanary.cli.commands.bundle import redactor_of
from loopcanary.cli.commands.show import issue_of
from loopcanary.cli.opening import opened, reads_stores
from loopcanary.cli.output import made_by, opened_output
from loopcanary.cli.param_types import WORD
from loopcanary.document import markdown
from loopcanary.document.parts import Document
from loopcanary.model import Issue, Session
from loopcanary.ui.sources import as_one, session_named

_FILE = "loopcanary-wrong.zip"
_ASKED = """\
What is wrong, and what is right: ...
How you know: ...
What the line really does, as a short program if you can: ...
"""


@click.command(short_help="Report a wrong diagnosis: a text to paste, and a redacted bundle.")
@click.argument("which", metavar="BUG_OR_STALL", type=WORD)
@reads_stores
@click.option("--output", "-o", type=WORD, metavar="FILE", default=_FILE, help=f"Default: {_FILE}.")
@click.option("--yes", "-y", is_flag=True, help="Write the bundle without asking.")
def command(which: str, stores: tuple[Path, ...], output: str, *, yes: bool) -> int:
    """Report a wrong diagnosis.

    Prints a text for loopcanary's issue tracker: names, paths and hosts are replaced, sentences are removed.
    Then it asks whether to write the same stall into a bundle. Nothing is sent.
    """
    from loopcanary.bundles.writing import Contents, write_bundle

    with opened(stores) as found:
        source = as_one([store.reader for store in found])
        issue = issue_of(source, which, [store.folder for store in found])
        session = session_named(source, issue.session)
        redactor = redactor_of((ALL,), None)
        click.echo(_text(redactor.issue(issue), None if session is None else redactor.session(session)))
        if not yes and not (sys.stdin.isatty() and click.confirm(f"Write this into {output}?", err=True)):
            return 0
        contents = Contents(issues=iter([issue]), session=lambda _: session, remarks={})
        with opened_output(output) as out:
            write_bundle(out, contents, made_by=made_by(), redactor=redactor)
    click.echo(f"{output}: written; attach it to the report.", err=True)
    return 0


def _text(issue: Issue, session: Session | None) -> str:
    """Markdown. The issue and its session are redacted."""
    from loopcanary.report.issue import issue_blocks

    on = () if session is None else (session.python, session.system, f"engine {session.engine}")
    verdict = markdown.render(Document(issue_blocks(issue, session)))
    return f"**Wrong diagnosis** ({', '.join(filter(None, (made_by(), *on)))})\n\n{_ASKED}\n{verdict}"

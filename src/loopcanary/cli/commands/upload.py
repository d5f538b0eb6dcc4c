"""`loopcanary upload`: sends stored stalls to a receiver, bundle by bundle."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from loopcanary.cli.bundling import contents_of, made_by, redaction_options, redactor
from loopcanary.cli.opening import opened, reads_stores
from loopcanary.cli.refusals import NotFoundError
from loopcanary.cli.selecting import Choice, choice_options
from loopcanary.cli.times import Duration, Size
from loopcanary.words.text import count_of

if TYPE_CHECKING:
    from loopcanary.bundles import Contents, Redactor
    from loopcanary.model import Issue
    from loopcanary.uploads import Progress, UploadTarget
    from loopcanary.uploads.journal import Item

_S_NS = 1_000_000_000
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(short_help="Send stored stalls to a receiver, bundle by bundle.")
@click.argument("url", metavar="URL")
@reads_stores
@click.option("--delete", is_flag=True, help="Delete here what the receiver acknowledged.")
@click.option(
    "--part-size",
    type=Size(),
    default="8MB",
    metavar="SIZE",
    help="Size of a bundle, unpacked. Default: 8MB.",
)
@click.option(
    "--timeout",
    type=Duration(),
    default="60s",
    metavar="DURATION",
    help="Longest wait for an answer. Default: 60s.",
)
@click.option(
    "--token-file",
    type=_FILE,
    metavar="FILE",
    help="File with the bearer token. Default: LOOPCANARY_UPLOAD_TOKEN.",
)
@click.option(
    "--headers-file", type=_FILE, metavar="FILE", help="File with headers, one a line: Name: value."
)
@click.option("--insecure-http", is_flag=True, help="Allow http to other machines.")
@redaction_options
@choice_options
def command(
    *,
    url: str,
    stores: tuple[Path, ...],
    delete: bool,
    part_size: int,
    timeout: int,
    token_file: Path | None,
    headers_file: Path | None,
    insecure_http: bool,
    redact: tuple[str, ...],
    redact_key: str | None,
    **asked: Any,
) -> int:
    """Send stored stalls to a receiver, bundle by bundle.

    Each bundle is a POST, repeated until it is acknowledged. What was acknowledged is not sent again: the
    same command continues where the last one stopped. docs/upload.md describes a receiver.
    """
    from loopcanary.uploads import Journal, Progress, Upload, UploadTarget, headers_of
    from loopcanary.uploads.client import connected

    receiver = UploadTarget.of(url, allow_plain=insecure_http)
    headers = headers_of(os.environ, token_file, headers_file)
    redaction = redactor(redact, redact_key)
    progress = Progress()
    with opened(stores, live=False) as found:
        choice = Choice(**asked).in_full(found)
        with connected(receiver, headers, timeout_s=timeout / _S_NS, agent=made_by()) as post:
            for store in found:
                with closing(Journal(store.folder)) as journal:
                    upload = Upload(
                        journal=journal,
                        receiver=receiver.key(",".join(redaction.classes)),
                        post=post,
                        delete=store.maintenance.delete_as_seen if delete else None,
                        say=lambda line: click.echo(f"{receiver.shown}: {line}", err=True),
                        progress=progress,
                    )
                    upload.finish_pending()
                    chosen = contents_of(store.reader, choice)
                    upload.send(chosen.issues, _writer(chosen, redaction, part_size))
    return _tell(progress, receiver)


def _writer(
    chosen: Contents, redaction: Redactor, enough_bytes: int
) -> Callable[[IO[bytes], Iterator[Issue]], Iterable[Item]]:
    from loopcanary.bundles import write_bundle
    from loopcanary.uploads.journal import item_of

    def write(out: IO[bytes], issues: Iterator[Issue]) -> Iterable[Item]:
        contents = replace(chosen, issues=issues)
        written = write_bundle(
            out, contents, made_by=made_by(), redaction=redaction, enough_bytes=enough_bytes
        )
        return [item_of(issue_id, state) for issue_id, state in written.issues]

    return write


def _tell(progress: Progress, receiver: UploadTarget) -> int:
    if not progress.sent and not progress.before:
        raise NotFoundError("no stall matches, nothing was sent")
    words = f"sent {count_of(progress.sent, 'record')} in {count_of(progress.bundles, 'bundle')}"
    if progress.before:
        words += f"; {progress.before:,} had been sent before"
    if progress.deleted:
        words += f"; {progress.deleted:,} deleted here"
    click.echo(f"{receiver.shown}: {words}.")
    return 0

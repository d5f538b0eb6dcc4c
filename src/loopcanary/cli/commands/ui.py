"""`loopcanary ui`: the stores as pages, in the browser."""

from __future__ import annotations

import threading
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loopcanary.cli.opening import become_owner, closed_at_end, found_stores, reads_stores
from loopcanary.cli.output import page_tools
from loopcanary.cli.param_types import number
from loopcanary.cli.refusals import refuse
from loopcanary.facts import working_folder

if TYPE_CHECKING:
    from loopcanary.store import Store
    from loopcanary.ui.live import Sight
    from loopcanary.ui.sources import OneStore

_EXTRA = ("starlette", "uvicorn", "jinja2")


@click.command()
@reads_stores
@click.option(
    "--port",
    type=number(int, 0, 65_535),
    default=0,
    metavar="N",
    help="Port to listen on. Default: a free one.",
)
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
@click.option(
    "--editor",
    default="vscode",
    metavar="NAME",
    help="Editor that opens source lines: vscode, vscodium, cursor, zed, pycharm, sublime, emacs, or a URL "
    "with {path} and {line}.",
)
def command(*, stores: tuple[Path, ...], port: int, no_browser: bool, editor: str) -> int:
    """Show what stalled in the browser, live while programs run.

    Shows one store or several; default: .loopcanary in the current folder. Listens on localhost only; the
    address contains a secret token.
    """
    try:
        from loopcanary.ui.serving import Parts, Wishes, serve
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRA:
            raise
        return refuse(f'the pages need {missing}: pip install "loopcanary[ui]"')
    with closed_at_end(found_stores(stores)) as found:
        for store in found:
            _tell_at_start(store)
        from loopcanary.store import StoreError

        wishes = Wishes(port=port, editor=editor, folder=working_folder())
        try:
            parts = Parts(
                stores=found,
                tools=page_tools(),
                look=_look,
                errors=(StoreError,),
                own=lambda: become_owner(found),
            )
            serve(parts, wishes, lambda url, once: _ready(url, None if no_browser else once))
        except OSError as error:
            return refuse(
                f"cannot listen on port {port}: {error.strerror or error}; choose another with --port"
            )
        except KeyboardInterrupt:
            pass
    return 0


def _tell_at_start(store: Store) -> None:
    """Prints what is wrong with the store; one that cannot be read may be mended while it is served."""
    from loopcanary.store import StoreError

    try:
        sight = _look(store)
    except StoreError as error:
        refuse(str(error))
        return
    for line in (*sight.notices, *sight.trouble):
        refuse(line)
    store.notices += sight.notices  # the pages show them, too


def _look(store: OneStore) -> Sight:
    """Takes in what dead processes left, and lays running programs over the store. StoreError."""
    from loopcanary.assembly.store import recover
    from loopcanary.store import Store, StoreError
    from loopcanary.ui.live import Sight

    assert isinstance(store, Store)
    store.open()
    try:
        found = recover(store)
    except StoreError as error:
        # Another user's store can be read all the same.
        wrong = f"flight files of killed programs were not stored: {error}"
        return Sight(trouble=(wrong, *store.maintenance.unreadable()), notices=_taken(store.notices))
    store.overlay(found.running, [*found.ongoing, *found.starts])
    return Sight(
        running=tuple(found.running),
        ongoing=tuple(found.ongoing),
        trouble=tuple(store.maintenance.unreadable()),
        notices=(*_taken(store.notices), *found.notices),
    )


def _taken(notices: list[str]) -> tuple[str, ...]:
    taken = tuple(notices)
    del notices[: len(taken)]  # a page that is being made may add one
    return taken


def _ready(url: str, once: str | None) -> None:
    """`once` is the address for the browser. Every user of the machine can read a browser's command line
    (/proc/PID/cmdline), so the token in it serves one request only."""
    click.echo(f"loopcanary: {url}")
    if once is not None:
        # Browsers of terminals, and some others, are waited for; the server has to answer meanwhile.
        threading.Thread(target=_open_browser, args=(once,), daemon=True, name="loopcanary browser").start()


def _open_browser(url: str) -> None:
    with suppress(webbrowser.Error, OSError):
        webbrowser.open(url)

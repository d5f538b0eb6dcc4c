"""The stores that a command reads: named, opened, with what dead processes left taken in."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from loopcanary.cli.refusals import NotFoundError, refuse
from loopcanary.cli.words import Folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from loopcanary.store import Store

store_option: Callable[[Any], Any] = click.option(
    "--store",
    type=Folder(),
    metavar="DIR",
    help="Folder of the store. Default: .loopcanary in the current folder.",
)
_stores_option: Callable[[Any], Any] = click.option(
    "--store",
    "more",
    multiple=True,
    type=Folder(),
    metavar="DIR",
    help="A store, as STORE; may be repeated. Default: .loopcanary in the current folder.",
)
_stores_argument: Callable[[Any], Any] = click.argument(
    "stores", metavar="[STORE ...]", nargs=-1, type=Folder()
)


def reads_stores(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command `stores`, which people name as arguments or by `--store`; empty: the default."""

    @wraps(command)
    def with_stores(*args: Any, stores: tuple[Path, ...], more: tuple[Path, ...], **rest: Any) -> Any:
        return command(*args, stores=_distinct(stores + more), **rest)

    return _stores_argument(_stores_option(with_stores))  # type: ignore[no-any-return]


def _distinct(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Each folder once, as it is named first."""
    named: dict[str, Path] = {}
    for folder in folders:
        # Not pathlib's, which raise for a user or a loop of links that is wrong.
        named.setdefault(os.path.realpath(os.path.expanduser(folder)), folder)  # noqa: PTH111
    return tuple(named.values())


@contextmanager
def opened(given: tuple[Path, ...], *, live: bool = True) -> Iterator[list[Store]]:
    """The stores. `live`: with what runs now laid over them.

    Raises what `found_stores` does, and StoreError.
    """
    with closed_at_end(found_stores(given)) as stores:
        for store in stores:
            store.open()
            _recover(store, live)
            _tell(store.maintenance.unreadable())
        try:
            yield stores
        finally:
            for store in stores:
                _tell(store.notices)


def found_stores(given: tuple[Path, ...], *, make: bool = False) -> list[Store]:
    """The stores of these folders, or the default one, not opened yet. `make`: also folders to be made.

    Raises NotFoundError where a folder is not there, UsageError where it is no store, ConfigError.
    """
    from loopcanary.assembly.store import open_store
    from loopcanary.config import load
    from loopcanary.store import find, may_be_store

    found = []
    for folder in given or (None,):
        config = load(store=folder)
        place = find(config.store).folder
        if not may_be_store(place) and not (make and not os.path.lexists(place)):
            next_step = "`loopcanary run PROGRAM` makes one, --store names another"
            if place.is_dir():
                raise click.UsageError(f"{place} is no store: {next_step}")
            raise NotFoundError(f"there is no store in {place}: {next_step}")
        found.append(open_store(place, config))
    return found


@contextmanager
def closed_at_end(stores: list[Store]) -> Iterator[list[Store]]:
    """The stores, which are closed afterwards."""
    with ExitStack() as stack:
        for store in stores:
            stack.callback(store.close)
        yield stores


def _recover(store: Store, live: bool) -> None:
    from loopcanary.assembly.store import recover
    from loopcanary.store import StoreError

    try:
        found = recover(store)
    except StoreError as error:
        # Another user's store can be read all the same; its flight files stay for its owner.
        refuse(f"what killed programs left was not stored: {error}")
        return
    finally:
        _tell(store.notices)
    _tell(found.notices)
    if live and (found.running or found.ongoing):
        store.overlay(found.running, [*found.ongoing, *found.starts])


def _tell(notices: list[str]) -> None:
    for notice in notices:
        refuse(notice)
    notices.clear()

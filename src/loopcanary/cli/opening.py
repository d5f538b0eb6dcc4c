"""The stores that a command reads: named, opened, with what dead processes left taken in."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from loopcanary import whose_folder
from loopcanary.cli.param_types import FOLDER
from loopcanary.cli.refusals import NotFoundError, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from loopcanary.store import Store

store_option: Callable[[Any], Any] = click.option(
    "--store",
    type=FOLDER,
    metavar="DIR",
    help="Folder of the store. Default: .loopcanary in the current folder.",
)
_stores_option: Callable[[Any], Any] = click.option(
    "--store",
    "more",
    multiple=True,
    type=FOLDER,
    metavar="DIR",
    help="A store, as STORE; may be repeated. Default: .loopcanary in the current folder.",
)
_stores_argument: Callable[[Any], Any] = click.argument(
    "stores", metavar="[STORE ...]", nargs=-1, type=FOLDER
)


def reads_stores(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command `stores`, named as arguments or by `--store`; empty: the default one."""

    @wraps(command)
    def with_stores(*args: Any, stores: tuple[Path, ...], more: tuple[Path, ...], **rest: Any) -> Any:
        return command(*args, stores=_distinct(stores + more), **rest)

    return _stores_argument(_stores_option(with_stores))  # type: ignore[no-any-return]


def _distinct(folders: Iterable[Path]) -> tuple[Path, ...]:
    """The folders without repetitions, under their first names."""
    named: dict[str, Path] = {}
    for folder in folders:
        # Not pathlib's, which raise for a user or a loop of links that is wrong.
        named.setdefault(os.path.realpath(os.path.expanduser(folder)), folder)  # noqa: PTH111
    return tuple(named.values())


@contextmanager
def opened(given: tuple[Path, ...], *, live: bool = True, writes: bool = False) -> Iterator[list[Store]]:
    """Opens the stores. `live` lays running programs over them; `writes` as in `found_stores`. Raises what
    `found_stores` does, and StoreError."""
    with closed_at_end(found_stores(given, writes=writes)) as stores:
        for store in stores:
            store.open()
            _recover(store, live)
            _tell(store.maintenance.unreadable())
        try:
            yield stores
        finally:
            for store in stores:
                _tell(store.notices)


def found_stores(given: tuple[Path, ...], *, make: bool = False, writes: bool = False) -> list[Store]:
    """The stores of these folders, or the default one, not opened yet. `make`: also folders to be made.
    `writes`: the command changes them, so that root becomes their owner.

    Raises NotFoundError where a folder is not there, UsageError where it is no store, ConfigError, and what
    `become_owner` does.
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
                raise click.UsageError(f"{place} is not a store: {next_step}")
            raise NotFoundError(f"there is no store in {place}: {next_step}")
        found.append(open_store(place, config))
    if writes:
        become_owner(found)
    return found


def become_owner(stores: Sequence[Store]) -> None:
    """Makes root, who is about to write, the owner of these stores, for good. StoreError: it cannot."""
    from loopcanary.store import StoreError

    for store in stores:
        store.close()
    try:
        whose_folder.become_owner(str(store.folder) for store in stores)
    except PermissionError as error:
        raise StoreError(str(error)) from error


@contextmanager
def closed_at_end(stores: list[Store]) -> Iterator[list[Store]]:
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
        refuse(f"flight files of killed programs were not stored: {error}")
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

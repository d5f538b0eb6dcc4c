"""The store that a command works on, opened, with what dead processes left taken in."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from loopcanary.cli import refuse
from loopcanary.cli.words import Folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from loopcanary.store import Store

NOTHING_FOUND = 1

store_option: Callable[[Any], Any] = click.option(
    "--store",
    type=Folder(),
    metavar="DIR",
    help="Folder of the store. Default: .loopcanary in the current folder.",
)
more_stores_option: Callable[[Any], Any] = click.option(
    "--store", "more", multiple=True, type=Folder(), metavar="DIR", help="Another way to name a store."
)
_stores_argument: Callable[[Any], Any] = click.argument(
    "stores", metavar="[STORE ...]", nargs=-1, type=Folder()
)
_store_argument: Callable[[Any], Any] = click.argument(
    "named", metavar="[STORE]", required=False, type=Folder()
)


def one_store(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command `store`, which people name as an argument or by `--store`; None: the default."""

    @wraps(command)
    def with_store(*args: Any, store: Path | None, named: Path | None, **rest: Any) -> Any:
        if store is not None and named is not None:
            raise click.UsageError("two stores are named, one as an argument and one by --store")
        return command(*args, store=store or named, **rest)

    return _store_argument(store_option(with_store))  # type: ignore[no-any-return]


def several_stores(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command `stores`, which people name as arguments or by `--store`; empty: the default."""

    @wraps(command)
    def with_stores(*args: Any, stores: tuple[Path, ...], more: tuple[Path, ...], **rest: Any) -> Any:
        return command(*args, stores=distinct(stores + more), **rest)

    return _stores_argument(more_stores_option(with_stores))  # type: ignore[no-any-return]


def distinct(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Each folder once, as it is named first."""
    named: dict[str, Path] = {}
    for folder in folders:
        # Not pathlib's, which raise for a user or a loop of links that is wrong.
        named.setdefault(os.path.realpath(os.path.expanduser(folder)), folder)  # noqa: PTH111
    return tuple(named.values())


@contextmanager
def opened_all(given: tuple[Path, ...]) -> Iterator[list[Store]]:
    """The stores, as `opened` has one; an empty list, said on stderr, if one of them is not there."""
    with ExitStack() as stack:
        sources = [stack.enter_context(opened(folder)) for folder in given or (None,)]
        found = [source for source in sources if source is not None]
        yield found if len(found) == len(sources) else []


@contextmanager
def opened(given: Path | None, *, live: bool = True) -> Iterator[Store | None]:
    """The store, or None, said on stderr, where none is there. `live`: with what runs now laid over it.

    Raises StoreError and ConfigError.
    """
    store = found_store(given)
    if store is None:
        yield None
        return
    with closed_at_end(store):
        store.open()
        _recover(store, live)
        _tell(store.maintenance.unreadable())
        yield store


def found_store(given: Path | None) -> Store | None:
    """The store, not opened yet, or None, said on stderr, where none is there. ConfigError."""
    from loopcanary.assembly.store import open_store
    from loopcanary.config import load
    from loopcanary.store import find

    config = load(store=given)
    folder = find(config.store).folder
    if not folder.is_dir():
        refuse(f"there is no store in {folder}: `loopcanary run PROGRAM` makes one, --store names another")
        return None
    return open_store(folder, config)


@contextmanager
def closed_at_end(store: Store) -> Iterator[Store]:
    """The store, which is closed afterwards."""
    try:
        yield store
    finally:
        store.close()


def _recover(store: Store, live: bool) -> None:
    from loopcanary.assembly.store import recover
    from loopcanary.store import StoreError

    try:
        found = recover(store)
    except StoreError as error:
        # Another user's store can be read all the same; its flight files stay for its owner.
        refuse(f"what dead processes left was not taken in: {error}")
        return
    finally:
        _tell(store.notices)
    _tell(found.notices)
    if live and (found.running or found.ongoing):
        store.overlay(found.running, found.ongoing)


def _tell(notices: list[str]) -> None:
    for notice in notices:
        refuse(notice)
    notices.clear()

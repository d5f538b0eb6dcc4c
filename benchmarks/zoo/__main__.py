"""Every kind under every watcher: `make zoo`, or in benchmarks/ `python -m zoo`."""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import importlib.metadata
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from zoo import catalogue, here, loops, page, results, trial, watchers
from zoo.catalogue import Kind
from zoo.trial import Trial

GROUPS = {"both": tuple(loops.OF_ASYNCIO), "others": tuple(loops.OTHERS), "all": tuple(loops.ALL)}
QUICK = (
    "sleep", "regex", "json_loads", "lock_held", "gil_hog_in_c", "subprocess_run", "tiny_callbacks",
    "gc_explicit", "hang_regex", "ok_idle", "ok_executor", "ok_short_callbacks",
)  # fmt: skip


def main() -> None:
    """Plays what is asked for and shows all results there are."""
    asked = _arguments().parse_args()
    console = Console(width=None if Console().is_terminal else 250)
    everything = catalogue.read_all()
    known = {kind.name: kind for kind in everything}
    installed = _versions()
    trials, about = results.read(asked.results)
    for more in asked.add:
        trials, about = results.added((trials, about), results.read(more))
    if not asked.show:
        playable = list(_playable(_loops_asked(asked), console))
        plan = _plan(asked, everything, installed, playable)
        trials = results.without(trials, plan)
        about = _about(about, installed, playable)
        drawn = any(loops.ALL[loop].screen for loop in playable)
        with here.screen() if drawn else contextlib.nullcontext():
            for number, (kind, watcher, loop) in enumerate(plan, start=1):
                for _ in range(asked.repeats):
                    trials.append(_play(known[kind], watcher, loop, console, f"{number}/{len(plan)}"))
                results.write(asked.results, trials, about)
    page.show(trials, everything, about, console)
    if asked.page:
        page.write(asked.page, trials, everything, about)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="zoo", description=__doc__)
    parser.add_argument("--kind", action="append", metavar="NAME", help="only these, * and ? allowed")
    parser.add_argument("--watcher", action="append", choices=watchers.names(), help="only these")
    parser.add_argument(
        "--loop",
        action="append",
        choices=[*loops.ALL, *GROUPS],
        help="only these; both are asyncio and uvloop, others all but these",
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a dozen kinds, loopcanary, once, asyncio")
    parser.add_argument("--show", action="store_true", help="play nothing, show the results there are")
    parser.add_argument(
        "--results", type=Path, default=Path("zoo-results.json"), help="added to, by kind and watcher"
    )
    parser.add_argument(
        "--add", type=Path, action="append", default=[], metavar="RESULTS", help="these results as well"
    )
    parser.add_argument("--page", type=Path, help="the page of Markdown to put the figures into")
    return parser


def _loops_asked(asked: argparse.Namespace) -> list[str]:
    if asked.quick and not asked.loop:
        return ["asyncio"]
    return [name for word in asked.loop or ["all"] for name in GROUPS.get(word, (word,))]


def _playable(names: Sequence[str], console: Console) -> Iterator[str]:
    """Those that can be played here; of the others it is said why not."""
    for name in dict.fromkeys(names):
        _, obstacle = here.look(name)
        if obstacle:
            console.print(f"not played on {name}: {obstacle}", style="dim", markup=False)
        else:
            yield name


def _plan(
    asked: argparse.Namespace,
    kinds: Sequence[Kind],
    installed: dict[str, str | None],
    playable: Sequence[str],
) -> list[tuple[str, str, str]]:
    """(kind, watcher, loop), watcher by watcher."""
    if asked.quick:
        asked.kind, asked.repeats = asked.kind or list(QUICK), 1
        asked.watcher = asked.watcher or [page.OWN]
    patterns = [pattern.replace("-", "_") for pattern in asked.kind or ["*"]]
    return [
        (kind.name, watcher, loop)
        for loop in playable
        for watcher in asked.watcher or watchers.names()
        if installed[watcher] is not None
        if loop in watchers.loops_of(watcher)
        for kind in kinds
        if loop in kind.loops
        and watcher in (kind.watchers or [watcher])
        and any(fnmatch.fnmatch(kind.name, pattern) for pattern in patterns)
    ]


def _about(
    before: dict[str, Any], installed: dict[str, str | None], playable: Sequence[str]
) -> dict[str, Any]:
    """What is known of these results: of those that stay, too."""
    machine, made_at = trial.machine(), datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    played = {
        name: {"version": here.look(name)[0], "python": machine["python"], "made_at": made_at}
        for name in playable
    }
    return {
        "machine": machine,
        "made_at": made_at,
        "versions": {name: version for name, version in installed.items() if version},
        "absent": [name for name, version in installed.items() if version is None],
        "loops": before.get("loops", {}) | played,
    }


def _play(kind: Kind, watcher: str, loop: str, console: Console, progress: str) -> Trial:
    try:
        played = trial.play(kind, watcher, loop)
    except Exception as error:  # noqa: BLE001 - an adapter that stumbles costs its own run only
        played = Trial(
            kind=kind.name,
            watcher=watcher,
            loop=loop,
            outcome="failed",
            note=f"{type(error).__name__}: {error}",
        )
    verdict = page.cell([played]) + (" disturbed" if played.disturbed else "")
    console.print(
        f"{progress:>10}  {watcher}, {loop}: {kind.name}: {verdict} {played.note}", style="dim", markup=False
    )
    return played


def _versions() -> dict[str, str | None]:
    """Of each watcher; None where it is not installed, empty for what comes with Python."""
    return {
        name: _version(package) if (package := watchers.find(name).PACKAGE) else ""
        for name in watchers.names()
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()

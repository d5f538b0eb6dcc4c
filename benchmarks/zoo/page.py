"""The results as tables: on the terminal, and as a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from zoo import others, watchers
from zoo.catalogue import Kind
from zoo.loops import OF_ASYNCIO
from zoo.totals import COLUMNS, LEGEND, Figure, bugs_of, cell, row
from zoo.trial import Trial

if TYPE_CHECKING:
    from rich.console import Console

OWN = "loopcanary"
"""The watcher that is held to the targets."""
BEGIN, END = "<!-- figures: made by `make zoo`, do not edit -->", "<!-- end of figures -->"


def show(trials: Sequence[Trial], kinds: Sequence[Kind], about: dict[str, Any], console: Console) -> None:
    """Prints both tables; what misses its target is red."""
    for loop in _loops(trials):
        console.print(_totals_table(trials, loop, about))
    if list(others.played(trials)):
        console.print(_others_table(trials, about))
    for loop in _loops(trials):
        console.print(_cells_table(trials, kinds, loop))
    if list(others.played(trials)):
        console.print(_other_cells_table(trials, kinds))
    console.print(LEGEND, style="dim")
    for line in misses(trials, kinds):
        console.print(Text(line, style="red"))


def _totals_table(trials: Sequence[Trial], loop: str, about: dict[str, Any]) -> Table:
    table = Table(title=f"{loop}: {_disturbed(trials, loop)}", title_justify="left")
    table.add_column("watcher")
    for column in COLUMNS:
        table.add_column(column.title, justify="right")
    for name, figures in _rows(trials, loop):
        table.add_row(_named(name, about), *[_styled(figure) for figure in figures])
    for name in about.get("absent", []):
        table.add_row(f"{name}: not installed")
    table.add_row(f"target for {OWN}", *[column.target for column in COLUMNS], style="dim")
    return table


def _styled(figure: Figure) -> Text:
    return Text(figure.text, style={True: "green", False: "bold red", None: ""}[figure.reached])


def _cells_table(trials: Sequence[Trial], kinds: Sequence[Kind], loop: str) -> Table:
    table = Table(title=loop, title_justify="left")
    table.add_column("kind")
    names = _names(trials)
    for name in names:
        table.add_column(name, overflow="fold")
    table.add_column("what it is")
    for kind, cells in _cells(trials, kinds, loop, names):
        table.add_row(kind.name, *cells, kind.summary)
    return table


def _others_table(trials: Sequence[Trial], about: dict[str, Any]) -> Table:
    table = Table(title="other loops", title_justify="left")
    for title in ("loop", "watcher"):
        table.add_column(title)
    for column in COLUMNS:
        table.add_column(column.title, justify="right")
    for loop in others.played(trials):
        for name, figures in _rows(trials, loop):
            table.add_row(others.title(loop, about), _named(name, about), *[_styled(one) for one in figures])
    return table


def _other_cells_table(trials: Sequence[Trial], kinds: Sequence[Kind]) -> Table:
    table = Table(title=f"{OWN} on other loops", title_justify="left")
    table.add_column("kind")
    for loop in others.played(trials):
        table.add_column(loop)
    for kind, cells in others.cells(trials, kinds, OWN):
        table.add_row(kind.name, *cells)
    return table


def write(path: Path, trials: Sequence[Trial], kinds: Sequence[Kind], about: dict[str, Any]) -> None:
    """Puts the figures into the page, between its two marks. The text outside the marks stays."""
    _put(path, BEGIN, END, "\n".join(_markdown(trials, kinds, about)))


def _put(path: Path, begin: str, end: str, figures: str) -> None:
    text = path.read_text()
    if begin not in text or end not in text:
        raise ValueError(f"{path}: write {begin} and {end} where the figures belong")
    head, _, rest = text.partition(begin)
    path.write_text(f"{head}{begin}\n\n{figures}\n{end}{rest.partition(end)[2]}")


def _markdown(trials: Sequence[Trial], kinds: Sequence[Kind], about: dict[str, Any]) -> Iterator[str]:
    machine = about["machine"]
    yield (
        f"Measured on CPython {machine['python']}, {machine['system']}, {machine['machine']}, "
        f"{machine['cores']} cores, {about['made_at']}; threshold {watchers.THRESHOLD_MS} ms for all."
    )
    for loop in _loops(trials):
        yield f"\n### Totals on {loop}\n\n{_disturbed(trials, loop)}.\n"
        yield from _markdown_table(
            ["watcher", *[column.title for column in COLUMNS]],
            [
                *(
                    [_named(name, about), *[_bold(figure) for figure in row]]
                    for name, row in _rows(trials, loop)
                ),
                *([f"{name}: not installed", *[""] * len(COLUMNS)] for name in about.get("absent", [])),
                [f"*target for {OWN}*", *[f"*{column.target}*" for column in COLUMNS]],
            ],
        )
    if list(others.played(trials)):
        yield from _other_loops(trials, kinds, about)
    yield "\n### Where loopcanary is wrong\n"
    yield from ([f"- {line}" for line in misses(trials, kinds)] or ["Nowhere in these runs."])


def _other_loops(trials: Sequence[Trial], kinds: Sequence[Kind], about: dict[str, Any]) -> Iterator[str]:
    yield f"\n### Other loops\n\n{others.introduction(trials, kinds)}\n"
    yield from _markdown_table(
        ["loop", "watcher", *[column.title for column in COLUMNS]],
        [
            *(
                [others.title(loop, about), _named(name, about), *[_bold(figure) for figure in figures]]
                for loop in others.played(trials)
                for name, figures in _rows(trials, loop)
            ),
            [f"*target for {OWN}*", "", *[f"*{column.target}*" for column in COLUMNS]],
        ],
    )


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for cells in (head, ["---"] * len(head), *rows):
        yield "| " + " | ".join(one.replace("|", "\\|") for one in cells) + " |"


def _bold(figure: Figure) -> str:
    return f"**{figure.text}**" if figure.reached is False else figure.text


def misses(trials: Sequence[Trial], kinds: Sequence[Kind]) -> list[str]:
    """What loopcanary got wrong, in words."""
    known = {kind.name: kind for kind in kinds}
    lines: dict[str, int] = {}
    for trial in trials:
        if trial.watcher == OWN and trial.kind in known and (line := _miss(trial, known[trial.kind])):
            lines[line] = lines.get(line, 0) + 1
    told = [line + (f" ({count} times)" if count > 1 else "") for line, count in lines.items()]
    split = bugs_of([trial for trial in trials if trial.watcher == OWN])
    return told + [
        f"{kind} on {loop}: counted as {len(set(bugs))} bugs"
        for (kind, loop), bugs in split.items()
        if len(set(bugs)) > 1
    ]


def _miss(trial: Trial, kind: Kind) -> str | None:
    where = f"{kind.name} on {trial.loop}"
    if trial.outcome == "failed":
        return f"{where}: the program failed: {trial.note[-200:]}"
    score, told = trial.score, trial.reports
    if score.false_alarms:
        return f"{where}: reported {', '.join(' or '.join(report.causes) for report in told)}"
    if score.detected is False:
        return f"{where}: not reported"
    wrong = []
    places = ", ".join(f"{frame.function}:{frame.line}" for report in told for frame in report.frames)
    if score.function is False or score.line is False:
        marked = ", ".join(
            f"{place.function}:{sorted(place.lines)}" for place in kind.culprits or kind.holders
        )
        wrong.append(f"culprit {places or 'none'} instead of {marked}")
    if score.cause is False:
        causes = ", ".join(" or ".join(report.causes) for report in told)
        wrong.append(f"cause {causes} instead of {' or '.join(kind.causes)}")
    elif score.best is False:
        wrong.append(f"a word other than {kind.causes[0]}, which says most")
    if score.advice is False:
        wrong.append(f"advice: {next(report.advice for report in told if report.advice)}")
    if score.holder is False:
        named = [f"{report.thread} in {report.holder.function}" for report in told if report.holder]
        true = f"{' or '.join(kind.threads)} in {', '.join(one.function for one in kind.holders)}"
        wrong.append(f"guilty thread {', '.join(named) or 'none'} instead of {true}")
    if score.duration_right is False:
        wrong.append(f"duration off by {score.duration_error_ms:.1f} ms of {trial.truth_ms:.0f}")
    return f"{where}: {'; '.join(wrong)}" if wrong else None


def _rows(trials: Sequence[Trial], loop: str) -> Iterator[tuple[str, list[Figure]]]:
    for name in _names(trials):
        own = [trial for trial in trials if trial.watcher == name and trial.loop == loop]
        if own:
            yield name, row(own, judged_by_targets=name == OWN)


def _cells(
    trials: Sequence[Trial], kinds: Sequence[Kind], loop: str, names: Sequence[str]
) -> Iterator[tuple[Kind, list[str]]]:
    here = [trial for trial in trials if trial.loop == loop]
    for kind in kinds:
        of_kind = [trial for trial in here if trial.kind == kind.name]
        if of_kind:
            yield kind, [cell([trial for trial in of_kind if trial.watcher == name]) for name in names]


def _names(trials: Sequence[Trial]) -> list[str]:
    there = {trial.watcher for trial in trials}
    return [name for name in watchers.names() if name in there]


def _loops(trials: Sequence[Trial]) -> list[str]:
    """Those of asyncio's, each of which has tables of its own."""
    return sorted({trial.loop for trial in trials}.intersection(OF_ASYNCIO))


def _named(name: str, about: dict[str, Any]) -> str:
    version = about.get("versions", {}).get(name)
    return f"{name} {version}" if version else name


def _disturbed(trials: Sequence[Trial], loop: str) -> str:
    here = [trial for trial in trials if trial.loop == loop]
    disturbed = sum(trial.disturbed for trial in here)
    return (
        f"{len(here)} runs; in {disturbed} of them other work kept the program from running, "
        "so only detection, function and line are judged"
    )

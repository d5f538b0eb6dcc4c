"""import: importing modules while the loop waits."""

from __future__ import annotations

from collections import Counter

from loopcanary.diagnosis.cause import Finding
from loopcanary.diagnosis.frames import PlacedFrame, Role
from loopcanary.diagnosis.observation import Observation, Seen
from loopcanary.model import Cause


def find_imports(observation: Observation) -> Finding | None:
    """By frames of importlib inside the work. A module that sleeps or waits while it is imported has been
    explained by what it waits for; reading, parsing and running its code is the import."""
    explained = observation.select(lambda seen: Role.IMPORT in seen.stack.roles)
    if not explained:
        return None
    statement = _statement(observation, explained)
    what = f"inside `{statement}`" if statement else "importing modules"
    return Finding(
        cause=Cause.IMPORT,
        share=observation.share(explained),
        confidence=0.92,
        evidence=(f"{observation.of_all(explained)} were {what}.", *_modules(explained)),
        explained=explained,
    )


def _importer(seen: Seen) -> PlacedFrame | None:
    """The frame that began the outermost import of the sample."""
    importer = None
    for inner, outer in zip(seen.work, seen.work[1:], strict=False):
        if inner.role is Role.IMPORT and outer.role is not Role.IMPORT:
            importer = outer
    return importer


def _statement(observation: Observation, explained: tuple[Seen, ...]) -> str | None:
    sources = Counter(
        source
        for seen in explained
        if (importer := _importer(seen)) is not None
        and (source := observation.sites.of(importer).source) is not None
    )
    return sources.most_common(1)[0][0] if sources else None


def _modules(explained: tuple[Seen, ...]) -> tuple[str, ...]:
    """The files whose module code ran, by how many samples were in them."""
    files = Counter(
        view.shown.file
        for seen in explained
        for view in seen.work[:-1]
        if view.shown.qualname == "<module>" and not view.plumbing
    )
    if not files:
        return ()
    return (f"Most of them ran the module code of {files.most_common(1)[0][0]}.",)

"""import: importing modules while the loop waits."""

from __future__ import annotations

from collections.abc import Iterable

from loopcanary.diagnosis.causes.locks import find_holders, holder_sentences, waiter_sentences
from loopcanary.diagnosis.causes.verdict import Finding
from loopcanary.diagnosis.code.stack_frames import PlacedFrame, Role
from loopcanary.diagnosis.samples.marks import slept_in
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.diagnosis.samples.views import WeighedSample
from loopcanary.model import Cause, Holder
from loopcanary.words.sentences import Sentence, say
from loopcanary.words.waiting import thread_by_name

_WORTH_SAYING = 0.25


def find_imports(observation: Observation) -> Finding | None:
    """By frames of importlib inside the work, whatever the imported module does: imported at the start, it
    would not do that here."""
    explained = observation.select(lambda seen: Role.IMPORT in seen.stack.path.roles)
    if not explained:
        return None
    statement = _heaviest((_source(observation, seen), seen.weight_ns) for seen in explained)
    some = observation.of_all(explained)
    locked = _locked(explained)
    holders = find_holders(observation, [seen for seen in locked if seen.sample.lock is not None])
    is_lock = bool(holders) and 2 * observation.share(locked) > observation.share(explained)
    return Finding(
        cause=Cause.IMPORT,
        share=observation.share(explained),
        confidence=0.92,
        evidence=(
            say("in-import", some=some, statement=statement) if statement else say("importing", some=some),
            *_modules(explained),
            *_lock_sentences(observation, locked, holders),
            *_asleep(observation, explained),
        ),
        explained=explained,
        holders=holders if is_lock else (),
        title=_title(holders[0]) if is_lock else None,
        topic="held-import" if is_lock else None,
    )


def _title(holder: Holder) -> Sentence:
    module = (holder.lock or "").partition(" of ")[2] or "a module"
    return say("title:thread-imports", holder=thread_by_name(holder.thread), module=module)


def _heaviest(weighed: Iterable[tuple[str | None, int]]) -> str | None:
    held: dict[str, int] = {}
    for name, weight in weighed:
        if name is not None:
            held[name] = held.get(name, 0) + max(1, weight)
    return max(held, key=lambda name: held[name]) if held else None


def _importer(seen: WeighedSample) -> PlacedFrame | None:
    """The frame that began the outermost import of the sample."""
    importer = None
    for inner, outer in zip(seen.work, seen.work[1:], strict=False):
        if inner.role is Role.IMPORT and outer.role is not Role.IMPORT:
            importer = outer
    return importer


def _source(observation: Observation, seen: WeighedSample) -> str | None:
    importer = _importer(seen)
    return None if importer is None else observation.sites.of(importer).source


def _bodies(seen: WeighedSample) -> list[str]:
    """Files of the modules whose bodies run, innermost first, within the outermost import."""
    importer = _importer(seen)
    inside = seen.work[: seen.work.index(importer)] if importer in seen.work else ()
    return [view.shown.file for view in inside if view.shown.qualname == "<module>" and not view.plumbing]


def _modules(explained: tuple[WeighedSample, ...]) -> tuple[Sentence, ...]:
    """The module whose import holds the others, and the one whose code ran."""
    bodies = [(found, seen.weight_ns) for seen in explained if (found := _bodies(seen))]
    outermost = _heaviest((found[-1], weight_ns) for found, weight_ns in bodies)
    innermost = _heaviest((found[0], weight_ns) for found, weight_ns in bodies)
    if innermost is None:
        return ()
    if outermost == innermost:
        return (say("module-code", module=innermost),)
    return (say("module-code-for", module=innermost, wanted=outermost),)


def _locked(explained: tuple[WeighedSample, ...]) -> list[WeighedSample]:
    """Those that waited for a module that another thread was importing."""
    return [
        seen
        for seen in explained
        if seen.innermost is not None
        and seen.innermost.role is Role.IMPORT
        and seen.innermost.shown.qualname.startswith("_ModuleLock")
    ]


def _lock_sentences(
    observation: Observation, locked: list[WeighedSample], holders: tuple[Holder, ...]
) -> tuple[Sentence, ...]:
    if not locked:
        return ()
    kinds = {seen.sample.lock.kind for seen in locked if seen.sample.lock is not None}
    lock = say("lock-of-module", lock=kinds.pop()) if len(kinds) == 1 else say("some-module")
    return (
        say("module-lock", some=observation.of_all(locked), lock=lock),
        *holder_sentences(holders),
        *waiter_sentences(observation),
    )


def _asleep(observation: Observation, explained: tuple[WeighedSample, ...]) -> tuple[Sentence, ...]:
    asleep = [seen for seen in explained if seen.syscall is not None]
    if observation.share(asleep) < _WORTH_SAYING:
        return ()
    return (say("import-asleep", some=observation.of_all(asleep), calls=slept_in(asleep)),)

"""From a verdict to a sentence that names the way out. The sentences: words.remedies."""

from __future__ import annotations

from dataclasses import replace

from loopcanary.diagnosis.advice.setting import ABOUT_NO_CALL, Plain, Setting
from loopcanary.diagnosis.advice.table import ASYNCIO, RemedyTable, find_remedy, registered
from loopcanary.model import Blocker, Cause
from loopcanary.words.remedies import ELSEWHERE, TASKS, Remedy, Way
from loopcanary.words.sentences import advice, say

__all__ = ["RemedyTable", "Setting", "advise", "find_remedy", "registered"]

_HOLDERS_SIDE = ("held-block", "held-lock")
_PLACES = ("call", "holder", "at", "slow", "block")
"""In the texts of rows."""
_USELESS_ELSEWHERE = ("busy-wait",)
"""Topics of work that is to be left out, and not to be done on a thread."""
_THREAD_HELPS = frozenset({Way.THREAD, Way.CLIENT, Way.RESOLVE, Way.CHILD, Way.TIMER})


def advise(
    cause: Cause, blocker: Blocker | None, setting: Setting, *, table: RemedyTable | None = None
) -> str | None:
    """One to three sentences, or None where no row fits.

    Args:
        cause: The cause of the stall.
        blocker: What the culprit was doing.
        setting: What else is known of it.
        table: The rows to choose from.
    """
    table = table or registered()
    loop = table.loop_of(setting.loop)
    row = _choose(table, cause, blocker, setting, loop)
    if row is None:
        return None
    if loop != ASYNCIO:
        said = _say(row if row.way is None else table.way_out(row.way, loop), blocker, setting, loop)
    else:
        said = _in_framework(table, row, cause, blocker, setting)
    if row.topic not in _HOLDERS_SIDE or (waiting := _of_topic(table, "held-wait", loop)) is None:
        return said
    row = waiting if loop == ASYNCIO else table.way_out(Way.HANDOVER, loop)
    return say("both", first=said, second=_say(row, blocker, setting, loop))


def _choose(
    table: RemedyTable, cause: Cause, blocker: Blocker | None, setting: Setting, loop: str
) -> Remedy | None:
    """The row in asyncio's words, or one that is about no way."""
    found = None
    if cause not in ABOUT_NO_CALL:
        found = find_remedy(table, cause, blocker, setting.reached, setting.origin)
    topic = _of_topic(table, setting.topic, loop)
    if topic is not None and (found is None or not topic.replaces or found.id in topic.replaces):
        return topic
    row = found or table.about(cause, loop) or table.about(cause, ASYNCIO)
    if row is None or cause is not Cause.NATIVE_CPU or setting.released_gil is None:
        return row
    # What was seen of the GIL says more than a general row, and is right where another says the contrary.
    if found is not None and found.way is not (Way.PROCESS if setting.released_gil else Way.THREAD):
        return row
    return _of_topic(table, "released-gil" if setting.released_gil else "kept-gil", loop)


def _of_topic(table: RemedyTable, topic: str | None, loop: str) -> Remedy | None:
    return None if topic is None else table.about(topic, loop) or table.about(topic, ASYNCIO)


def _in_framework(
    table: RemedyTable, row: Remedy, cause: Cause, blocker: Blocker | None, setting: Setting
) -> str:
    """The row's sentence, or the one that replaces it in a framework; and what is to be said beside."""
    around = [remedy for remedy in table.frameworks if remedy.within in setting.within]
    chosen = next((remedy for remedy in around if row.id in remedy.replaces), row)
    beside = [remedy for remedy in around if not remedy.replaces and row.way in _THREAD_HELPS][:1]
    if cause is Cause.DNS and chosen.way is not Way.RESOLVE:
        beside += [remedy for remedy in [table.about("slow-names", ASYNCIO)] if remedy is not None]
    said = _say(chosen, blocker, setting, ASYNCIO)
    for remedy in beside:
        said = say("both", first=said, second=_say(remedy, blocker, setting, ASYNCIO))
    return said


def _say(row: Remedy, blocker: Blocker | None, setting: Setting, loop: str) -> str:
    call = None if blocker is None else blocker.call
    # What runs over a generator is no call that could be made elsewhere.
    values = {"call": None if call is None or call.startswith("(") else call, **setting.values}
    sentence = advice(row, {name: values.get(name) for name in _PLACES if f"{{{name}" in row.text})
    plain = setting.plain
    if plain is None or not row.needs_coroutine or loop not in ELSEWHERE:
        return sentence
    if row.topic in _USELESS_ELSEWHERE:
        plain = replace(plain, handed=None)
    return _around(plain, sentence, row.way, loop)


def _around(plain: Plain, sentence: str, way: Way | None, loop: str) -> str:
    """A sentence that can be followed in a coroutine only, said of a plain `def`."""
    if plain.coroutine is None or not (plain.handed or plain.may_await):
        return say("in-a-task", function=plain.function, code=TASKS[loop], advice=sentence)
    coroutine, at, function = plain.coroutine, plain.at, plain.function
    if way is Way.PIECES and plain.is_repeated:
        return say("in-coroutine-itself", coroutine=coroutine, at=at, advice=sentence)
    callers = say("callers-too") if plain.has_callers else None
    if plain.handed is None:
        return say(
            "made-coroutine",
            function=function,
            callers=callers,
            coroutine=coroutine,
            at=at,
            advice=sentence,
        )
    texts = ELSEWHERE[loop]
    code = texts.get(way, texts[None]).format(call=plain.handed)
    if not plain.may_await:
        return say("in-coroutine", coroutine=coroutine, at=at, code=code)
    return say(
        "in-coroutine-or",
        coroutine=coroutine,
        at=at,
        code=code,
        function=function,
        callers=callers,
        advice=sentence,
    )

"""What is known of a stall beyond its cause and its call, as far as advice goes by it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import lru_cache

from loopcanary.diagnosis.code.call_sites import callee_of, operator_of
from loopcanary.late_dataclass import dataclass
from loopcanary.model import Blocker, Cause
from loopcanary.registry import REGISTRY, REMEDIES
from loopcanary.words.libraries import rows_of
from loopcanary.words.remedies import ALIASES, ELSEWHERE, OTHER, TASKS, Needs, Remedy, Way
from loopcanary.words.sentences import advice, say

ABOUT_NO_CALL = frozenset({Cause.GC, Cause.HOST, Cause.BURST, Cause.GIL, Cause.IMPORT, Cause.CRASH})
"""Causes whose remedy is not about the call that the thread happened to be in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """The culprit is a plain `def`: what it would await can be awaited elsewhere only."""

    function: str
    """Its name; without a coroutine, that of the function that the loop or a package called."""
    may_await: bool = False
    """It can be made an `async def`, if what calls it takes one; a lambda or a special method cannot."""
    has_callers: bool = False
    """Other functions lie between it and the coroutine."""
    coroutine: str | None = None
    """The innermost coroutine of the program that called it; None: the loop or a package did."""
    at: str = ""
    """File and line of the coroutine's call."""
    is_repeated: bool = False
    """A loop of the coroutine repeats the call, and does not await."""
    handed: str | None = None
    """The call as arguments of what runs it elsewhere: `load, path`; None: it is not written as a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What advice goes by, beside cause and call."""

    loop: str = "asyncio"
    topic: str | None = None
    """What the stall is about, if that is more than its cause: the `topic` of a row of words.remedies."""
    reached: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    """The modules below the culprit, outermost first, and the time that led through them."""
    passed: Mapping[str, float] = field(default_factory=dict)
    """Of the places below the culprit, the share of its time: packages, modules, `module:function`. Where no
    code of the program was on the stack, of all places."""
    called: frozenset[tuple[str, str]] = frozenset()
    """Of the culprit and its callers, the function, and the places of what called it."""
    callee: str | None = None
    """The name of the call by the imports of its file: `pandas.read_csv` of `pd.read_csv(...)`; None: they do
    not have it."""
    origin: str | None = None
    """What made the receiver of the call, likewise: `sqlite3.connect`."""
    within: frozenset[str] = frozenset()
    """The packages that the stacks lead through."""
    endpoint: str | None = None
    """The framework that called the program's coroutine as an endpoint or dependency; None: none did."""
    released_gil: bool | None = None
    """The C call let other threads run; None: no such call, or not known."""
    is_foreign: bool = False
    """The line is a package's, or not known: no function of the program was in what the loop ran."""
    is_awaited: bool = False
    """The call is a package's coroutine, which the line awaits: it has no thread to go to."""
    calls_back: bool = False
    """The call is of C code that called Python code back, as a method of a widget does."""
    plain: Plain | None = None
    """None: the culprit can await, or it is not known whether."""
    values: Mapping[str, object] = field(default_factory=dict)
    """Values for the places in a row's text, except `call`."""


ASYNCIO = "asyncio"
_BUILT_INS = frozenset({"list", "sum", "min", "max", "sorted", "str", "eval", "exec"})
"""Built-ins that run code of their argument: `list(rows)`."""
_ENOUGH = 0.25
"""Share of the culprit's time that a package must have taken for its row to apply."""


class RemedyTable:
    """Remedies by call, package, operator and cause. The first row that fits is taken."""

    def __init__(self, rows: Iterable[Remedy]) -> None:
        self.by_last_name: dict[str, list[tuple[str, Remedy]]] = {}
        """By the last part of a call's name; with the whole name."""
        self.by_module: dict[str, list[Remedy]] = {}
        self.roots: set[str] = set()
        """The packages that have rows."""
        self.frameworks: list[Remedy] = []
        self.proved: list[Remedy] = []
        """The rows that ask for proof."""
        self._by_loop: dict[tuple[str, object], Remedy] = {}
        for row in rows:
            self._add(row)
        self._loops = {loop for loop, _ in self._by_loop if loop}

    def _add(self, row: Remedy) -> None:
        if row.needs is not None:
            self.proved.append(row)
            return
        for name in row.calls:
            self.by_last_name.setdefault(name.rpartition(".")[2], []).append((name, row))
        for module in row.modules:
            self.by_module.setdefault(module, []).append(row)
            self.roots.add(module.partition(".")[0])
        if row.within:
            self.frameworks.append(row)
        elif not row.calls and not row.modules:
            for about in (row.topic,) if row.topic else (*row.causes,) or (row.way,):
                self._by_loop.setdefault((row.loop, about), row)

    def loop_of(self, kind: str) -> str:
        """The loop in whose words a kind of loop is advised."""
        name = kind.lower() or ASYNCIO
        name = next((other for alias, other in ALIASES.items() if name.startswith(alias)), name)
        return next((loop for loop in self._loops if name.startswith(loop)), OTHER)

    def about(self, about: str | Cause | Way, loop: str) -> Remedy | None:
        """The row of a topic, cause or way for a loop, else for any."""
        return self._by_loop.get((loop, about)) or self._by_loop.get(("", about))

    def way_out(self, way: Way, loop: str) -> Remedy:
        """The row of a way for a loop, else for a loop that no row is for."""
        return self._by_loop.get((loop, way)) or self._by_loop[OTHER, way]


@lru_cache(maxsize=16)
def registered(packages: frozenset[str] = frozenset()) -> RemedyTable:
    """The table of the rows that are registered, third parties' first, and of those of some packages."""
    rows = REGISTRY.loaded(REMEDIES)
    others = [row for one, found in rows if not one.is_built_in for row in found if isinstance(row, Remedy)]
    libraries = {row.id: row for package in sorted(packages) for row in rows_of(package)}
    ours = (row for one, found in rows if one.is_built_in for row in found)
    return RemedyTable([*others, *libraries.values(), *ours])


def table_for(blocker: Blocker | None, setting: Setting) -> RemedyTable:
    """The table with the rows of the packages to which the stacks and the call lead."""
    callee = setting.callee or (None if blocker is None or blocker.call is None else callee_of(blocker.call))
    names = {callee, setting.origin, *(one for modules in setting.reached for one in modules)}
    roots = setting.within | {name.partition(".")[0] for name in names if name}
    return registered(frozenset(root for root in roots if rows_of(root)))


def find_remedy(
    table: RemedyTable,
    cause: Cause,
    blocker: Blocker | None,
    reached: Mapping[tuple[str, ...], int],
    origin: str | None = None,
    *,
    callee: str | None = None,
) -> Remedy | None:
    """The row for a call: by the call as written, by modules it reached, by a name that fits any receiver, by
    its bare name.

    `reached`: the modules below the culprit, outermost first, and the time that led through them. `origin`:
    what made the call's receiver. `callee`: the name of the call by imports.
    """
    text, is_function = (
        None if blocker is None else blocker.call,
        callee is not None and callee.count(".") == 1,
    )
    callee = callee or (None if text is None else callee_of(text))
    named = _by_name(table, cause, _from(origin, callee)) or _by_name(table, cause, callee)
    found = _by_reached(table, cause, reached)
    if named is not None and (found is None or not (callee in _BUILT_INS or _is_elsewhere(named, reached))):
        return named
    if found is not None or text is None:
        return found
    if callee is None:
        return _by_name(table, cause, operator_of(text))
    return None if is_function or _is_packages(reached) else _by_last_name(table, cause, callee)


def _from(origin: str | None, callee: str | None) -> str | None:
    return None if origin is None or callee is None else f"{origin}.{callee.rpartition('.')[2]}"


def _by_name(table: RemedyTable, cause: Cause, callee: str | None) -> Remedy | None:
    if callee is None:
        return None
    rows = _fitting(table, cause, callee)
    return next((remedy for name, remedy in rows if _is_call(callee, name)), None)


def _by_last_name(table: RemedyTable, cause: Cause, callee: str) -> Remedy | None:
    for name, remedy in _fitting(table, cause, callee):
        if "." in callee:
            if name.startswith("*."):
                return remedy
        elif remedy.causes:  # `from time import sleep`: the bare name, where the cause supports it
            return remedy
    return None


def _fitting(table: RemedyTable, cause: Cause, callee: str) -> Iterator[tuple[str, Remedy]]:
    for name, remedy in table.by_last_name.get(callee.rpartition(".")[2], ()):
        if _fits(remedy, cause):
            yield name, remedy


def _fits(remedy: Remedy, cause: Cause) -> bool:
    return not remedy.causes or cause in remedy.causes


def _is_call(callee: str, name: str) -> bool:
    """A name without a dot is a built-in's: `sum(...)`, but not `frame.sum()`."""
    if callee == name:
        return True
    return "." in name and name[0] != "*" and callee.endswith((f".{name}", f"_{name}"))


def _is_elsewhere(remedy: Remedy, reached: Iterable[tuple[str, ...]]) -> bool:
    """Whether the row's packages were not reached, though others were: a queue that is multiprocessing's."""
    roots = {module.partition(".")[0] for modules in reached for module in modules}
    return bool(remedy.modules) and roots.isdisjoint(name.partition(".")[0] for name in remedy.modules)


def _is_packages(reached: Mapping[tuple[str, ...], int]) -> bool:
    """Whether the call is a package's, by most of the time: `tables.read()` is not a file's `read`."""
    inside = sum(
        weight
        for modules, weight in reached.items()
        if modules and modules[0].partition(".")[0] not in sys.stdlib_module_names
    )
    return 2 * inside > sum(reached.values())


def _by_reached(table: RemedyTable, cause: Cause, reached: Mapping[tuple[str, ...], int]) -> Remedy | None:
    """The row to which most of the time leads, if that is enough."""
    held: dict[str, int] = {}
    rows: dict[str, Remedy] = {}
    for modules, weight in reached.items():
        row = _of_modules(table, cause, modules)
        if row is not None:
            rows[row.id] = row
            held[row.id] = held.get(row.id, 0) + weight
    best = max(held, key=lambda name: held[name], default=None)
    return None if best is None or held[best] < _ENOUGH * sum(reached.values()) else rows[best]


def _of_modules(table: RemedyTable, cause: Cause, reached: tuple[str, ...]) -> Remedy | None:
    """The outermost package that the table knows; within it the row for its innermost part, such as
    `logging.handlers` of `logging`."""
    for root in dict.fromkeys(module.partition(".")[0] for module in reached):
        if root not in table.roots and root not in sys.stdlib_module_names:
            return None  # what a package calls is its own: its user cannot change that
        inside = [module for module in reached if module.partition(".")[0] == root]
        packages = {package for module in inside for package in _packages(module)}
        for package in sorted(packages, key=lambda name: (-name.count("."), name)):
            for remedy in table.by_module.get(package, ()):
                if _fits(remedy, cause):
                    return remedy
    return None


def _packages(module: str) -> Iterator[str]:
    """`a.b.c`, `a.b`, `a`."""
    while module:
        yield module
        module = module.rpartition(".")[0]


_MOST = 0.6
"""Share of the culprit's time that proves where it went."""


def _find_proved(
    table: RemedyTable, cause: Cause, blocker: Blocker | None, setting: Setting, loop: str
) -> Remedy | None:
    """The first row whose proof was seen. Of causes that are about no call, only rows that name them: what
    allocates is what makes garbage, unless the program asked for the collection."""
    call = "" if blocker is None else blocker.call or ""
    if cause in ABOUT_NO_CALL:
        fitting = [row for row in table.proved if cause in row.causes and setting.topic is None]
    else:
        fitting = [row for row in table.proved if _fits(row, cause)]
    fitting = [row for row in fitting if row.loop in ("", loop)]
    return next((row for row in fitting if row.needs and _is_proved(row, row.needs, call, setting)), None)


def _is_proved(row: Remedy, needs: Needs, call: str, setting: Setting) -> bool:
    shares, callee = setting.passed, setting.callee or callee_of(call)
    asked = [one for one in setting.called if not needs.own or one[0] in needs.own]
    return (
        (not row.modules or max(shares.get(name, 0.0) for name in row.modules) >= _ENOUGH)
        and (not row.calls or (callee is not None and any(_is_call(callee, name) for name in row.calls)))
        and (not needs.through or max(shares.get(place, 0.0) for place in needs.through) >= _MOST)
        and (not needs.above or any(place in needs.above for _, place in asked))
        and not any(re.search(rf"[(,] *{name} *=", call) for name in needs.without)
    )


_HOLDERS_SIDE = ("held-block", "held-lock")
_PLACES = ("call", "holder", "at", "slow", "block")
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
    table = table or table_for(blocker, setting)
    loop = table.loop_of(setting.loop)
    row = _choose(table, cause, blocker, setting, loop)
    if row is None or (cause not in ABOUT_NO_CALL and _stays_here(row, blocker, setting)):
        return None
    if loop != ASYNCIO:
        way = Way.THREAD if _is_driver(row, setting, loop) else row.way
        said = _say(row if way is None else table.way_out(way, loop), blocker, setting, loop)
    else:
        said = _in_framework(table, row, cause, blocker, setting)
    if row.topic not in _HOLDERS_SIDE or (waiting := _of_topic(table, "held-wait", loop)) is None:
        return said
    row = waiting if loop == ASYNCIO else table.way_out(Way.HANDOVER, loop)
    return say("both", first=said, second=_say(row, blocker, setting, loop))


_RUNS_THE_LOOP = re.compile(
    r"(?:^|\.)(?:q?app|q?application)\.exec_?$|\.(?:mainloop|run_forever|run_until_complete)$", re.IGNORECASE
)
"""What the loop did in such a call has no line of the program. `query.exec` and `session.exec` are others."""
_OF_ANY_LINE = frozenset({"", "released-gil", "kept-gil", "computes-inside"})
_WIDGETS = frozenset(
    {
        *("tkinter", "customtkinter", "ttkbootstrap", "PyQt5", "PyQt6", "PySide2", "PySide6", "qtpy"),
        *("gi", "wx", "kivy", "pyqtgraph"),
    }
)
"""Packages whose objects belong to the thread of the window."""
_DRAWING = _WIDGETS | {"matplotlib"}
"""The same in a window's program, where a figure is a widget's."""
_WINDOWS = ("qt", "pyqt", "pyside", "tk", "glib", "gtk")


_PATCHED = frozenset({"socket", "ssl", "select", "selectors"})
"""Where the standard library waits for peers, if gevent has not patched it."""


def _is_driver(row: Remedy, setting: Setting, loop: str) -> bool:
    """Whether a package waited for a peer below Python, where gevent's patching does not reach."""
    is_below = bool(setting.passed) and _PATCHED.isdisjoint(setting.passed)
    return loop == "gevent" and row.way is Way.CLIENT and is_below


def _stays_here(row: Remedy, blocker: Blocker | None, setting: Setting) -> bool:
    """Whether nobody can follow the row. Either it says where the program should make the call, and the
    program does not make it, or awaits it. Or the work belongs to the loop's thread: the loop's own run, a
    call of a widget."""
    if row.way is None:
        return False
    call = None if blocker is None else blocker.call
    callee = None if call is None else callee_of(call)
    if setting.is_foreign or setting.is_awaited or (callee is not None and _RUNS_THE_LOOP.search(callee)):
        return True
    if row.way not in (Way.THREAD, Way.PROCESS):
        return False
    is_window = setting.loop.lower().startswith(_WINDOWS)
    if not (_DRAWING if is_window else _WIDGETS).isdisjoint(setting.passed):
        return True
    is_general = not row.calls and not row.modules and row.topic in _OF_ANY_LINE
    return is_window and is_general and _may_be_widgets(callee, setting)


def _may_be_widgets(callee: str | None, setting: Setting) -> bool:
    """Whether a call may be of a widget: a method, in C, of an object that no import has."""
    is_native = not setting.passed or setting.calls_back
    return is_native and setting.callee is None and "." in (callee or "")


def _choose(
    table: RemedyTable, cause: Cause, blocker: Blocker | None, setting: Setting, loop: str
) -> Remedy | None:
    """The row in asyncio's words, or one that is about no way."""
    found = None
    if (proved := _find_proved(table, cause, blocker, setting, loop)) is not None:
        return proved
    if cause not in ABOUT_NO_CALL:
        found = find_remedy(table, cause, blocker, setting.reached, setting.origin, callee=setting.callee)
    topic = _of_topic(table, setting.topic, loop)
    if topic is not None and (found is None or not topic.replaces or _replaces(topic, found)):
        return topic
    row = found or table.about(cause, loop) or table.about(cause, ASYNCIO)
    if row is None or cause is not Cause.NATIVE_CPU or setting.released_gil is None:
        return row
    # What was seen of the GIL says more than a general row, and is right where another says the contrary.
    if found is not None and found.way is not (Way.PROCESS if setting.released_gil else Way.THREAD):
        return row
    return _of_topic(table, "released-gil" if setting.released_gil else "kept-gil", loop)


def _replaces(topic: Remedy, row: Remedy) -> bool:
    return row.id in topic.replaces or (row.way is not None and row.way.name.lower() in topic.replaces)


def _of_topic(table: RemedyTable, topic: str | None, loop: str) -> Remedy | None:
    return None if topic is None else table.about(topic, loop) or table.about(topic, ASYNCIO)


_RESOLVERS = frozenset({"socket:getaddrinfo", "socket:create_connection"})
"""Below these it is the machine's resolver that is slow; a package may ask a nameserver of its own."""


def _in_framework(
    table: RemedyTable, row: Remedy, cause: Cause, blocker: Blocker | None, setting: Setting
) -> str:
    """The row's sentence, or the one that replaces it in a framework, with a further sentence of the
    framework."""
    around = [remedy for remedy in table.frameworks if remedy.within in setting.within]
    chosen = next((remedy for remedy in around if row.id in remedy.replaces), row)
    beside = [
        remedy
        for remedy in around
        if not remedy.replaces and remedy.within == setting.endpoint and row.way in _THREAD_HELPS
    ][:1]
    if cause is Cause.DNS and chosen.way is not Way.RESOLVE and not _RESOLVERS.isdisjoint(setting.passed):
        beside += [remedy for remedy in [table.about("slow-names", ASYNCIO)] if remedy is not None]
    said = _say(chosen, blocker, setting, ASYNCIO)
    for remedy in beside:
        said = say("both", first=said, second=_say(remedy, blocker, setting, ASYNCIO))
    return said


def _say(row: Remedy, blocker: Blocker | None, setting: Setting, loop: str) -> str:
    call = None if blocker is None else blocker.call
    # What runs over a generator is not a call that could be made elsewhere.
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
        way_in = "made-or-task" if plain.coroutine is None and plain.may_await else "in-a-task"
        return say(way_in, function=plain.function, code=TASKS[loop], advice=sentence)
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

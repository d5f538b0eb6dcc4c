"""Imports that the first use of a name resolves (PEP 810): which statement, which line, what helps.

The frames are those of CPython 3.15.2: importlib's right below the line that used the name, at columns that
hold the name alone.
"""

from __future__ import annotations

import pytest
from tests.diagnosis.cases import APP, SITE, Texts, evidence, frame, judged, samples, stack

from loopcanary.model import Cause, Frame, Stall

MACHINERY = frame("_find_and_load", "<frozen importlib._bootstrap>", 1353)
BODY = frame("<module>", "/srv/app/shop/reports.py", 3)
PLAIN_ADVICE = "Import the module when the program starts, before the loop runs."


def lazily(bound: str, name: str, line: str = "return {}.make()", **texts: str) -> Stall:
    """The stall of a handler whose `line` uses a name. `bound`: the text of the module before it; `texts`: of
    other modules."""
    source = f"{bound}\nasync def handler():\n    {line.format(name)}\n"
    use = at_last(name, source)
    return of_frames(use, app=source, **texts)


def at_last(text: str, source: str) -> Frame:
    lines = source.rstrip("\n").split("\n")
    column = lines[-1].index(text) + 1
    return frame("handler", APP, len(lines), column=column, end_column=column + len(text))


def of_frames(*outer: Frame, **texts: str) -> Stall:
    here = stack(BODY, MACHINERY, *outer)
    return judged(evidence(samples(*[here] * 12, running=True)), sources=Texts(**texts))


def first_use(stall: Stall) -> str | None:
    return next((sentence for sentence in stall.evidence if sentence.startswith("The import was lazy")), None)


@pytest.mark.parametrize(
    ("bound", "name", "statement", "line"),
    [
        ("lazy import reports\n", "reports", "lazy import reports", 1),
        ("import sys\nlazy import json, reports  # slow\n", "reports", "lazy import json, reports", 2),
        ("lazy import shop.reports\n", "shop", "lazy import shop.reports", 1),
        ("lazy import shop.reports\n", "shop.reports", "lazy import shop.reports", 1),
        ("lazy import shop.reports as late\n", "late", "lazy import shop.reports as late", 1),
        ("lazy from shop import reports\n", "reports", "lazy from shop import reports", 1),
        ("lazy from .shop import reports\n", "reports", "lazy from .shop import reports", 1),
        (
            "'''A shop.'''\nlazy from shop import (\n    carts,  # (small)\n    reports as late,\n)\n",
            "late",
            "lazy from shop import (carts, reports as late)",
            2,
        ),
        ("if True:\n    lazy import reports\n", "reports", "lazy import reports", 2),
        ("lazy import reports\ndef other():\n    import reports\n", "reports", "lazy import reports", 1),
    ],
)
def test_the_statement_is_named_with_the_use(bound, name, statement, line):
    stall = lazily(bound, name)
    used_at = bound.count("\n") + 3
    assert stall.cause is Cause.IMPORT
    assert (stall.culprit.line, stall.title) == (
        used_at,
        f"lazy import of {name} in handler (app.py:{used_at})",
    )
    assert first_use(stall) == (
        f"The import was lazy: the first use of `{name}` (app.py:{used_at}) "
        f"resolved `{statement}` ({APP}:{line})."
    )
    assert stall.advice == (
        f"Use `{name}` once when the program starts, before the loop runs, or leave `lazy` out "
        f"(app.py:{line}); with `-X lazy_imports=all` only the first helps."
    )


def test_a_statement_without_the_keyword_stays_as_it_is():
    stall = lazily("import reports\n", "reports")
    assert "resolved `import reports`" in first_use(stall)
    assert stall.advice == (
        "Use `reports` once when the program starts, before the loop runs: "
        "its import (app.py:1) is lazy here, and waits for that."
    )


@pytest.mark.parametrize("package", ["shop/__init__", "shop"])
def test_a_part_of_a_package_is_bound_by_the_package(package):
    stall = lazily("import shop\n", "shop.report", **{package: "x = 1\nlazy from .reports import report\n"})
    assert stall.title == "lazy import of shop.report in handler (app.py:4)"
    statement = f"`lazy from .reports import report` (/srv/app/{package}.py:2)"
    assert first_use(stall).endswith(f"resolved {statement}.")


@pytest.mark.parametrize(
    ("bound", "name", "line", "texts"),
    [
        pytest.param("", "reports", "return {}.make()", {}, id="nothing binds the name"),
        pytest.param(
            "lazy import reports\nlazy from shop import reports\n",
            "reports",
            "return {}.make()",
            {},
            id="two statements bind it",
        ),
        pytest.param(
            "def other():\n    import reports\n",
            "reports",
            "return {}.make()",
            {},
            id="only a function binds it",
        ),
        pytest.param(
            "from shop import rows\n",
            "rows",
            "for row in {}: pass",
            {},
            id="an object that imports while it is gone through",
        ),
        pytest.param(
            "import shop.carts\n",
            "shop.report",
            "return {}()",
            {"shop/carts": "lazy from .reports import report\n"},
            id="another module than the package binds it",
        ),
        pytest.param("lazy import reports\n", "make(reports)", "return {}", {}, id="a call imports"),
    ],
)
def test_nothing_is_said_of_what_is_not_certain(bound, name, line, texts):
    stall = lazily(bound, name, line, **texts)
    assert (stall.cause, first_use(stall), stall.advice) == (Cause.IMPORT, None, PLAIN_ADVICE)


def test_an_import_in_a_function_keeps_its_statement():
    source = "lazy import other\n\ndef handler():\n    import reports\n"
    stall = of_frames(at_last("import reports", source), app=source)
    assert (stall.title, stall.advice) == ("import reports in handler (app.py:4)", PLAIN_ADVICE)
    assert first_use(stall) is None


def test_a_use_in_a_package_is_named_and_the_caller_blamed():
    source = "import charts\n\nasync def handler():\n    return charts.draw()\n"
    library = "lazy import reports\n\ndef draw():\n    return reports.make()\n"
    use = frame("draw", f"{SITE}/charts.py", 4, column=12, end_column=19)
    here = stack(BODY, MACHINERY, use, at_last("charts.draw()", source))
    texts = Texts(app=source)
    texts.add(f"{SITE}/charts.py", library)
    stall = judged(evidence(samples(*[here] * 12, running=True)), sources=texts)
    assert stall.title == "charts.draw() in handler (app.py:4)"
    assert first_use(stall) == (
        "The import was lazy: the first use of `reports` (charts.py:4) "
        f"resolved `lazy import reports` ({SITE}/charts.py:1)."
    )
    assert stall.advice == PLAIN_ADVICE


def test_a_use_that_waits_for_another_thread_is_not_the_first():
    source = "lazy import reports\n\nasync def handler():\n    return reports.make()\n"
    lock = frame("_ModuleLock.acquire", "<frozen importlib._bootstrap>", 120)
    here = stack(lock, MACHINERY, at_last("reports", source))
    stall = judged(evidence(samples(*[here] * 12, syscall="futex")), sources=Texts(app=source))
    assert (stall.cause, first_use(stall)) == (Cause.IMPORT, None)

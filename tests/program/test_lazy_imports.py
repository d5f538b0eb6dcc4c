"""Explicit lazy imports (PEP 810): what is reported of a first use on the loop, and that the advice helps."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .watching import Watched

pytestmark = pytest.mark.skipif(sys.version_info < (3, 15), reason="before PEP 810")

SLOW = "import time\n\ntime.sleep(0.3)\n\n\ndef answer():\n    return 42\n"
PACKAGE = "lazy from shop.reports import answer\n"
APP = """\
import asyncio

lazy import slow
lazy from other import (
    answer as second,
)
import shop

{start}


async def module():
    return slow.answer()


async def function():
    return second()


async def part():
    return shop.answer()


async def main():
    for work in module, function, part:
        await asyncio.create_task(work())


asyncio.run(main())
"""


@pytest.fixture
def stalls(tmp_path: Path, watched: Callable[..., Watched]) -> Callable[..., dict[str, Any]]:
    """stalls(app, package) -> those of the program, by the function that is to blame."""

    def run(app: str, package: str = PACKAGE) -> dict[str, Any]:
        program = tmp_path / "app.py"
        program.write_text(app)
        (tmp_path / "shop").mkdir(exist_ok=True)
        (tmp_path / "shop" / "__init__.py").write_text(package)
        for name in ("slow", "other", "shop/reports"):
            (tmp_path / f"{name}.py").write_text(SLOW)
        engine = watched()
        engine.run(program)
        return {stall["culprit"]["function"]: stall for stall in engine.report()["stalls"]}

    return run


def resolved(stall: dict[str, Any]) -> list[str]:
    """Name, place of its use, statement, and place of the statement."""
    told = " ".join(stall["evidence"])
    return list(re.search(r"first use of `(.+)` \((.+)\) resolved `(.+)` \((?:.*/)?(.+)\)\.", told).groups())


def test_a_first_use_is_an_import_of_its_statement(stalls):
    found = stalls(APP.format(start=""))
    assert {name: (stall["cause"], stall["title"]) for name, stall in found.items()} == {
        "module": ("import", "lazy import of slow in module (app.py:13)"),
        "function": ("import", "lazy import of second in function (app.py:17)"),
        "part": ("import", "lazy import of shop.answer in part (app.py:21)"),
    }
    assert [resolved(found[name]) for name in ("module", "function", "part")] == [
        ["slow", "app.py:13", "lazy import slow", "app.py:3"],
        ["second", "app.py:17", "lazy from other import (answer as second)", "app.py:4"],
        ["shop.answer", "app.py:21", "lazy from shop.reports import answer", "__init__.py:1"],
    ]
    assert found["module"]["advice"].startswith("Use `slow` once when the program starts, before the loop")


@pytest.mark.usefixtures("all_lazy")
def test_a_setting_that_makes_imports_lazy_is_seen(stalls):
    """The keeper and the command that reports have that setting, too."""
    found = stalls(APP.format(start="").replace("lazy ", ""), PACKAGE.replace("lazy ", ""))
    assert [resolved(found[name])[2:] for name in ("module", "function", "part")] == [
        ["import slow", "app.py:3"],
        ["from other import (answer as second)", "app.py:4"],
        ["from shop.reports import answer", "__init__.py:1"],
    ]
    assert "is lazy here, and waits for that" in found["module"]["advice"]


@pytest.fixture
def all_lazy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHON_LAZY_IMPORTS", "all")


@pytest.mark.parametrize(
    ("start", "keyword"),
    [("slow, second, shop.answer", "lazy "), ("", "")],
    ids=["used at the start", "without the keyword"],
)
def test_what_is_advised_helps(stalls, start, keyword):
    app, package = (text.replace("lazy ", keyword) for text in (APP.format(start=start), PACKAGE))
    assert stalls(app, package) == {}


@pytest.mark.usefixtures("all_lazy")
def test_a_use_at_the_start_helps_where_all_is_lazy(stalls):
    assert stalls(APP.format(start="slow, second, shop.answer")) == {}


FAILS = """\
import asyncio

async def main():
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: print(context["message"], repr(context["exception"])))
    loop.call_soon(int, "x")
    await asyncio.sleep(0)

asyncio.run(main())
"""


@pytest.mark.usefixtures("all_lazy")
def test_a_failing_callback_is_described_where_all_is_lazy(tmp_path, watched):
    program = tmp_path / "fails.py"
    program.write_text(FAILS)
    plain = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    assert plain.stdout.startswith("Exception in callback int() ValueError(")
    assert watched().run(program).stdout == plain.stdout

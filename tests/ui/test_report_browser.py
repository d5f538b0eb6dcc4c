"""The report that is a file, in headless Chromium: opened from the disk, read, filtered, printed, judged by
axe-core.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.building.issues import ISSUES, SLOW_METHOD, TRACES
from tests.building.stalls import HOSTILE, KILLED, SESSION, STALL, hostile_stall, session
from tests.ui.test_calls import recording, thread

from loopcanary.model import Cause
from loopcanary.model.calls import TracedCall, TracedCalls
from loopcanary.store import Retention, Store
from loopcanary.ui.document import document
from loopcanary.ui.pages.calls import calls_page

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), None)
if CHROMIUM is None:
    pytest.skip("no Chromium", allow_module_level=True)

LOOPCANARY = "import sys; from loopcanary.cli import main; sys.exit(main())"
_PATIENCE_MS = 120_000


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def written(folder: Path, store: Store) -> str:
    """The address of the report, made by the command of the store."""
    store.close()
    package = Path(sys.modules["loopcanary"].__file__).parents[1]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    file = folder / "report.html"
    command = [sys.executable, "-c", LOOPCANARY, "report", "--format", "html", "--limit", "0"]
    subprocess.run(
        [*command, "--store", str(store.folder), "-o", str(file)],
        env={
            **kept,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")])),
            "LOOPCANARY_RETENTION": "36500d",
        },
        check=True,
    )
    return file.as_uri()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")
    store = Store(folder / "store", retention=Retention(age_ns=1 << 62))
    slept = dataclasses.replace(STALL, id="s1-5", fingerprint="1:5", cause=Cause.SLEEP, title="time.sleep(1)")
    store.put([SESSION], [STALL, KILLED, slept])
    store.put_traces(SESSION.id, TRACES)
    for issue in ISSUES:
        store.put_issue(issue)
    return written(folder, store)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of a store in which every text is hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    store = Store(folder / "store", retention=Retention(age_ns=1 << 62))
    for number, text in enumerate(HOSTILE):
        ran = session(id=f"h{number}", name=text, host=text, version=text)
        scene = dataclasses.replace(TRACES.frames[0], scene=text)
        ran = dataclasses.replace(ran, traces=dataclasses.replace(TRACES, frames=(scene,)))
        store.put([ran], [hostile_stall(text, number)])
        issue = dataclasses.replace(ISSUES[0], id=f"i{number}", fingerprint=f"i{number}", title=text)
        store.put_issue(issue)
    return written(folder, store)


class Visit:
    """The file in a browser, and what must not be: dialogs, errors, refusals of its policy, requests."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.wrong: list[str] = []
        self.address = address
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(_PATIENCE_MS)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda dialog: self.wrong.append(dialog.message))
        self.page.on(
            "request",
            lambda request: (
                self.wrong.append(request.url)
                if not request.url.startswith((address, "data:image"))
                else None
            ),
        )
        self.page.goto(address)


@pytest.mark.parametrize(
    ("scheme", "width", "file"),
    [
        ("light", 1300, "report"),
        ("dark", 390, "report"),
        ("light", 390, "hostile"),
    ],
)
def test_it_is_accessible_fits_and_asks_for_nothing(
    chromium: Any, request: pytest.FixtureRequest, scheme: str, width: int, file: str
):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    visit = Visit(
        chromium,
        request.getfixturevalue(file),
        color_scheme=scheme,
        viewport={"width": width, "height": 900},
    )
    page = visit.page
    page.get_by_role("button", name="Open or close all").click()
    assert page.locator("details.bug:not([open])").count() == 0
    page.locator("details.bug:last-of-type .flame svg").wait_for()
    found = axe.Axe().run(page).response["violations"]
    assert [f"{one['id']}: {node['html'][:200]}" for one in found for node in one["nodes"]] == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.emulate_media(media="print")
    assert page.locator(".filters").is_hidden()
    assert visit.wrong == []
    visit.context.close()


def test_nothing_hostile_becomes_part_of_the_page(chromium: Any, hostile: str):
    visit = Visit(chromium, hostile)
    told = visit.page.evaluate(
        """() => ({
            scripts: [...document.scripts].filter((one) => one.type !== "application/json").length,
            data: [...document.scripts].filter((one) => one.type === "application/json").every(
                (one) => JSON.parse(one.textContent) !== null),
            bugs: document.querySelectorAll("details.bug").length,
            links: [...document.links].every((one) => one.getAttribute("href").startsWith("#")),
        })"""
    )
    assert told == {"scripts": 4, "data": True, "bugs": len(HOSTILE), "links": True}
    assert visit.wrong == []
    visit.context.close()


def test_bugs_are_filtered_by_text_and_cause(chromium: Any, report: str):
    visit = Visit(chromium, report)
    page = visit.page
    shown = page.locator("details.bug:visible")
    assert shown.count() == 3
    page.get_by_role("combobox", name="Cause").select_option("lock")
    assert shown.count() == 1
    page.get_by_text("1 of 3 match").wait_for()
    page.get_by_role("combobox", name="Cause").select_option("")
    page.get_by_role("searchbox", name="Text").fill("SLEEP nowhere")
    assert shown.count() == 0
    page.get_by_role("searchbox", name="Text").fill("time.sleep")
    assert shown.count() == 1
    visit.context.close()


def test_keys_open_a_bug_and_zoom_its_graph(chromium: Any, report: str):
    visit = Visit(chromium, report)
    page = visit.page
    page.locator("#top-title a").focus()
    page.keyboard.press("Enter")
    page.locator("details.bug[open] .flame:visible g.frame").last.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('details.bug') !== null")
    page.locator("details.bug > summary").nth(1).focus()
    page.keyboard.press("Enter")
    assert page.locator("details.bug[open]").count() == 2
    assert visit.wrong == []
    visit.context.close()


def test_the_waterfall_of_a_start_is_zoomed(chromium: Any, report: str):
    visit = Visit(chromium, report)
    page = visit.page
    page.locator("#issues details > summary", has_text="cold start").click()
    page.get_by_role("slider", name="Moment of the start").focus()
    for key in ("End", "ArrowLeft", "Shift+End", "Enter"):
        page.keyboard.press(key)
    assert page.locator(".waterfall .tree .tree-name:visible").all_inner_texts() == ["warm the cache"]
    page.get_by_role("button", name="Whole start").click()
    assert page.locator(".waterfall .leaf", has_text="interpreter start").is_visible()
    assert visit.wrong == []
    visit.context.close()


def test_it_is_read_without_scripts(chromium: Any, report: str):
    visit = Visit(chromium, report, java_script_enabled=False)
    page = visit.page
    assert page.locator(".filters").is_hidden()
    page.locator("details.bug > summary").first.click()
    bug = page.locator("details.bug[open]")
    assert bug.get_by_text("Your lines in it").first.is_visible()
    assert bug.locator(".timeline").is_visible()
    assert visit.wrong == []
    visit.context.close()


def test_calls_of_a_running_program_are_a_file(chromium: Any, tmp_path: Path):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    file = tmp_path / "calls.html"
    file.write_bytes(
        document(calls_page(recording(thread(1, "main", ("load", 0, 30), ("parse", 1, 20)))), "")
    )
    for width in (1300, 390):
        visit = Visit(chromium, file.as_uri(), viewport={"width": width, "height": 900})
        page = visit.page
        page.get_by_label("Search the flame graph of traced calls").fill("parse")
        page.get_by_text("1 frame, 66.7 % of the time").wait_for()
        found = axe.Axe().run(page).response["violations"]
        assert [f"{one['id']}: {node['html'][:200]}" for one in found for node in one["nodes"]] == []
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert visit.wrong == []
        visit.context.close()


def test_exact_calls_are_a_graph_that_is_searched(chromium: Any, tmp_path: Path):
    store = Store(tmp_path / "store", retention=Retention(age_ns=1 << 62))
    rows = tuple(
        TracedCall(
            frame=dataclasses.replace(STALL.stacks[0].frames[0], function=name, qualname=name),
            depth=depth,
            calls=calls,
            total_ns=ms * 1_000_000,
            self_ns=0,
        )
        for name, depth, calls, ms in (("serve", 0, 1, 400), ("look_up", 1, 6_000, 206))
    )
    store.put([SESSION], [dataclasses.replace(STALL, calls=TracedCalls(rows=rows))])
    store.put_issue(SLOW_METHOD)
    visit = Visit(chromium, written(tmp_path, store))
    page = visit.page
    page.locator("details.bug > summary").first.click()
    page.get_by_text("Calls of the longest stall").click()
    tools = page.locator("details.bug").get_by_label("Search the flame graph of traced calls")
    tools.fill("look_up")
    page.get_by_text("1 frame, 50.0 % of the time").wait_for()
    page.get_by_role("button", name="look_up \u00d76,000 (json/decoder.py): 206.0 ms, 50.0 %").focus()
    page.locator("details.bug .flame-tools output").get_by_text("6,000").wait_for()
    page.locator("#issues details > summary").first.click()
    page.locator("#issues .flame svg").wait_for()
    assert visit.wrong == []
    visit.context.close()

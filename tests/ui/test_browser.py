"""The pages in headless Chromium: with real data of a real run, read, filtered, changed, followed, judged by
axe-core.
"""

from __future__ import annotations

import dataclasses
import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.building.issues import ISSUES, SLOW_METHOD, STARTUP, TRACES
from tests.building.stalls import HOSTILE, SESSION, STALL, hostile_stall, session, stall
from tests.program.watching import PROGRAMS

from loopcanary.model import Cause
from loopcanary.store import Retention, Store

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), None)
if CHROMIUM is None:
    pytest.skip("no Chromium", allow_module_level=True)

LOOPCANARY = "import sys; from loopcanary.cli import main; sys.exit(main())"
PROGRAM = f"""
import asyncio, sys, time; sys.path.append({str(PROGRAMS)!r}); from blocking import until_sampled
async def price():
    time.sleep(0.25)
async def main():
    for _ in range(12):  # more than what a busy machine adds
        await asyncio.create_task(price(), name="price-7")
        await asyncio.sleep(0)
    print("stalled", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await asyncio.create_task(late(), name="late")
    print("late", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
async def late():
    for seconds in until_sampled(0.3):
        time.sleep(seconds)
asyncio.run(main())
"""
_PATIENCE_MS = 120_000


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    package = Path(sys.modules["loopcanary"].__file__).parents[1]
    path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOOPCANARY")}
    return {**kept, "PYTHONPATH": path, "XDG_STATE_HOME": str(tmp_path_factory.mktemp("state"))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def program(folder: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A program that stalled some times, runs, and stalls once more when it gets a line."""
    (folder / "app.py").write_text(PROGRAM)
    command = [
        sys.executable,
        "-c",
        LOOPCANARY,
        "run",
        "--store",
        str(folder / "store"),
        str(folder / "app.py"),
    ]
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "stalled\n"
            yield process
        finally:
            process.kill()


@contextmanager
def served(environment: dict[str, str], *stores: Path) -> Iterator[str]:
    command = [sys.executable, "-c", LOOPCANARY, "ui", "--no-browser", *map(str, stores)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.kill()


@pytest.fixture(scope="module")
def address(program: subprocess.Popen[str], folder: Path, environment: dict[str, str]) -> Iterator[str]:
    with served(environment, folder / "store") as address:
        yield address


@pytest.fixture(scope="module")
def hostile(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A store in which every text is hostile, and which has one issue of each kind."""
    folder = tmp_path_factory.mktemp("hostile") / "store"
    store = Store(folder, retention=Retention(age_ns=1 << 62))
    for number, text in enumerate(HOSTILE):
        store.put(
            [session(id=f"h{number}", name=text, host=text, version=text)], [hostile_stall(text, number)]
        )
    store.put([SESSION], [stall()])
    store.put_traces(SESSION.id, TRACES)
    for issue in ISSUES:
        store.put_issue(issue)
    for number, text in enumerate(HOSTILE):
        begun = {"title": text, "thread": text, "loop": text, "scene": text, "advice": text}
        named = dataclasses.replace(STALL.stacks[0].frames[0], function=text, qualname=text, file=f"/{text}")
        row = dataclasses.replace(SLOW_METHOD.rows[0], frame=named)
        phase = dataclasses.replace(STARTUP.phases[0], name=text)
        start = dataclasses.replace(STARTUP, id=f"start-{number}", program=text, phases=(phase,), **begun)
        store.put_issue(start)
        slow = dataclasses.replace(SLOW_METHOD, id=f"slow-{number}", fingerprint=f"m{number}", rows=(row,))
        store.put_issue(dataclasses.replace(slow, **begun))
    store.close()
    with served({**environment, "LOOPCANARY_RETENTION": "36500d"}, folder) as address:
        yield address


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        options = ["--no-sandbox", "--disable-gpu", "--disable-software-rasterizer"]
        browser = started.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


class Visit:
    """A page, and what went wrong in it: errors, refusals of the content policy, requests to others."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(_PATIENCE_MS)
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.origin = address.partition("/?")[0]
        self.page.on(
            "console", lambda message: self.wrong.append(message.text) if message.type == "error" else None
        )
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self._asked(request.url))
        self.page.goto(address)

    def _asked(self, url: str) -> None:
        if not url.startswith(self.origin):
            self.wrong.append(url)

    def to(self, path: str) -> Any:
        self.page.goto(self.origin + path)
        return self.page

    def address_of(self, page: str, selector: str) -> str:
        return self.to(page).get_attribute(selector, "href")


@pytest.fixture
def visit(chromium: Any, address: str) -> Iterator[Visit]:
    made = Visit(chromium, address)
    yield made
    assert made.wrong == []
    made.context.close()


FIXED = [
    "/",
    "/groups",
    "/changes",
    "/sessions",
    "/frames",
    "/startup",
    "/methods",
    "/groups?kind=other",
    "/doctor",
]
TRACED = [f"/issue?id={STARTUP.id}", f"/issue?id={SLOW_METHOD.id}"]


def paths(visit: Visit) -> list[str]:
    """One of each kind of page."""
    group = visit.address_of("/", ".rank a")
    stall = visit.address_of(group, ".figures a")
    ran = visit.address_of("/sessions", "tbody a")
    return [*FIXED, group, stall, ran, group.replace("/group?", "/group/delete?")]


def axe_findings(page: Any) -> list[str]:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page).response["violations"]
    return [f"{one['id']}: {node['html'][:200]}" for one in found for node in one["nodes"]]


def test_the_overview_answers_which_line_why_and_what_to_do(visit: Visit):
    page = visit.to("/")
    top = page.locator(".card.top")
    assert "time.sleep(0.25)" in top.locator("mark").inner_text()
    words = top.inner_text()
    assert "app.py:4" in words
    assert "sleep" in words
    assert "await asyncio.sleep" in words
    assert page.locator(".chart canvas").count() == 1


def test_the_chart_of_a_single_stall_spans_seconds(
    chromium: Any, environment: dict[str, str], tmp_path: Path
):
    store = Store(tmp_path / "store", retention=Retention(age_ns=1 << 62))
    store.put([dataclasses.replace(SESSION, started_wall_ns=STALL.began_wall_ns)], [STALL])
    store.close()
    with served({**environment, "LOOPCANARY_RETENTION": "36500d"}, tmp_path / "store") as address:
        visit = Visit(chromium, address, timezone_id="UTC")
        over = visit.page.locator(".chart .u-over")
        box = over.bounding_box()
        shown = []
        for x in (1, box["width"] - 1):
            over.hover(position={"x": x, "y": 20})
            shown.append(visit.page.locator(".chart .u-legend .u-value").first.inner_text())
        assert shown == ["2023-11-14 22:13:01", "2023-11-14 22:13:20"]
        assert visit.wrong == []
        visit.context.close()


def test_a_bar_of_the_chart_opens_the_stalls_in_it(visit: Visit):
    page = visit.to("/")
    over = page.locator(".chart .u-over")
    row = page.locator("details:has-text('in words') tbody a").last
    expected = row.get_attribute("href")
    over.wait_for()  # until it is laid out it has no box
    box = over.bounding_box()
    with page.expect_navigation():
        over.click(position={"x": box["width"] - 3, "y": box["height"] - 3})
    assert page.url == visit.origin + expected
    assert "time.sleep(0.25)" in page.locator("tbody").inner_text()
    assert axe_findings(page) == []


def test_the_overview_tells_in_brief_what_changed(chromium: Any, environment: dict[str, str], tmp_path: Path):
    hour_ns = 3_600_000_000_000
    later = session(id="s2", started_wall_ns=SESSION.started_wall_ns + hour_ns, ended_wall_ns=None)
    new = [
        stall(
            id=f"s2-{number}",
            session="s2",
            fingerprint=f"1:{number:04}",
            title=f"json.loads(body) in load_{number} (orders.py:87)",
            began_wall_ns=STALL.began_wall_ns + hour_ns + number,
        )
        for number in range(6)
    ]
    store = Store(tmp_path / "store", retention=Retention(age_ns=1 << 62))
    store.put([SESSION, later], [STALL, *new])
    store.close()
    with served({**environment, "LOOPCANARY_RETENTION": "36500d"}, tmp_path / "store") as address:
        visit = Visit(chromium, address)
        changed = visit.page.locator("section", has_text="What changed").last
        changed.get_by_text("Nothing certain").wait_for()
        changed.locator("summary", has_text="7 bugs that could be chance").click()
        assert changed.locator("tbody tr").count() == 4
        assert "new" in changed.locator("tbody tr").first.inner_text()
        assert axe_findings(visit.page) == []
        assert visit.wrong == []
        with visit.page.expect_navigation():
            changed.get_by_role("link", name="All changes").click()
        assert visit.page.locator("#changes tbody tr").count() == 7
        visit.context.close()


def test_a_store_without_stalls_says_so_on_every_page(
    chromium: Any, environment: dict[str, str], tmp_path: Path
):
    store = Store(tmp_path / "store", retention=Retention(age_ns=1 << 62))
    store.put_session(SESSION)
    store.close()
    with served({**environment, "LOOPCANARY_RETENTION": "36500d"}, tmp_path / "store") as address:
        visit = Visit(chromium, address)
        assert "1 program run watched" in visit.page.locator("main").inner_text()
        for path in (
            "/",
            "/groups",
            "/changes",
            "/sessions",
            "/frames",
            "/startup",
            "/methods",
            "/groups?kind=other",
            "/doctor",
        ):
            page = visit.to(path)
            assert page.locator("h1").count() == 1
            assert axe_findings(page) == [], path
        assert visit.wrong == []
        visit.context.close()


def test_a_damaged_store_is_set_aside_and_the_pages_go_on(
    chromium: Any, environment: dict[str, str], tmp_path: Path
):
    store = Store(tmp_path / "store", retention=Retention(age_ns=1 << 62))
    store.put([SESSION], [STALL])
    store.close()
    file = next(path for path in (tmp_path / "store").iterdir() if path.suffix == ".db")
    file.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 64)
    with served({**environment, "LOOPCANARY_RETENTION": "36500d"}, tmp_path / "store") as address:
        visit = Visit(chromium, address)
        # What was there is kept beside it, and said so.
        assert "No stall was recorded" in visit.page.locator("main").inner_text()
        [aside] = (tmp_path / "store").glob("loopcanary.db.damaged-*")
        assert aside.name in visit.page.locator("#notices").inner_text()
        assert aside.name in visit.to("/doctor").locator("main").inner_text()
        assert axe_findings(visit.page) == []
        assert visit.wrong == []
        visit.context.close()


def put_in_place(store: Path, content: bytes) -> None:
    """As a backup that is restored: another file of the same name, at once."""
    for side in store.glob("loopcanary.db-*"):
        side.unlink()
    (store / "new").write_bytes(content)
    (store / "new").replace(store / "loopcanary.db")


def test_open_pages_show_trouble_until_it_is_mended(
    chromium: Any, environment: dict[str, str], tmp_path: Path
):
    for name in ("kept", "damaged"):
        store = Store(tmp_path / name, retention=Retention(age_ns=1 << 62))
        store.put([SESSION], [stall(id=name, fingerprint=f"1:{name}", title=f"{name} (cache.py:12)")])
        store.close()
    database = tmp_path / "damaged" / "loopcanary.db"
    sound = database.read_bytes()
    newer = sound[:60] + (99).to_bytes(4, "big") + sound[64:]  # sqlite.org/fileformat2.html: the user version
    kept = {**environment, "LOOPCANARY_RETENTION": "36500d"}
    with served(kept, tmp_path / "kept", tmp_path / "damaged") as address:
        visit = Visit(chromium, address)
        page = visit.to("/groups")
        page.get_by_role("link", name="damaged (cache.py:12)").wait_for()
        put_in_place(tmp_path / "damaged", newer)
        notice = page.locator("#notices .notice")
        notice.filter(has_text="newer loopcanary").wait_for()
        assert str(database) in notice.inner_text()
        page.get_by_role("link", name="damaged (cache.py:12)").wait_for(state="detached")
        assert page.get_by_role("link", name="kept (cache.py:12)").count() == 1
        put_in_place(tmp_path / "damaged", sound)
        page.get_by_role("link", name="damaged (cache.py:12)").wait_for()
        assert page.locator("#notices .notice").count() == 0
        put_in_place(tmp_path / "damaged", b"this is no database" * 1_000)
        page.locator("#notices .notice", has_text="set aside").wait_for()
        [aside] = (tmp_path / "damaged").glob("loopcanary.db.damaged-*")
        assert aside.name in page.locator("#notices").inner_text()
        assert page.get_by_role("link", name="kept (cache.py:12)").count() == 1
        assert axe_findings(page) == []
        assert visit.wrong == []
        visit.context.close()
    put_in_place(tmp_path / "damaged", newer)
    with served(kept, tmp_path / "damaged") as address:
        visit = Visit(chromium, address)
        page = visit.page
        assert page.locator("h1").inner_text() == "The store cannot be read"
        assert axe_findings(page) == []
        put_in_place(tmp_path / "damaged", sound)
        page.get_by_role("link", name="damaged (cache.py:12)").first.wait_for()
        assert page.locator("#notices .notice", has_text="newer").count() == 0
        # That the page could not be made is what the browser says, and all it says.
        assert all("503" in line for line in visit.wrong)
        visit.context.close()


def test_a_group_has_its_flame_graph_and_keys_zoom_it(visit: Visit):
    page = visit.to(visit.address_of("/", ".rank a"))
    assert page.locator(".flame rect.own").count() >= 1
    frame = page.locator(".flame g.frame").last
    frame.focus()
    page.keyboard.press("Enter")
    assert visit.wrong == []


def test_a_flame_graph_is_searched_and_says_what_is_pointed_at(visit: Visit):
    page = visit.to(visit.address_of("/", ".rank a"))
    frame = page.locator(".flame g.frame").last
    frame.wait_for()
    told = page.locator(".flame-tools output").first
    search = page.get_by_label("Search the flame graph").first
    frame.focus()
    words = frame.get_attribute("aria-label")
    assert told.inner_text() == words
    name = words.partition(" (")[0].partition(":")[0]
    search.fill(name.upper())
    assert page.locator(".flame rect.found").count() >= 1
    assert " % of the time" in told.inner_text()
    search.fill("no such function")
    assert told.inner_text() == "0 frames, 0.0 % of the time"
    search.fill("")
    assert page.locator(".flame rect.found").count() == 0
    page.get_by_role("button", name="Whole graph").first.click()
    assert visit.wrong == []


def test_a_cursor_over_the_timeline_tells_the_moment_and_a_range(visit: Visit):
    group = visit.address_of("/", ".rank a")
    page = visit.to(visit.address_of(group, ".figures a"))
    told, graph = page.locator(".moment"), page.locator(".flame-tools button")
    lane = page.locator("svg.lane").first.bounding_box()
    page.mouse.move(lane["x"] + lane["width"] * 0.5, lane["y"] + 5)
    doing = re.compile(r"\nThread\n(blocked|ready, not run)")  # it sleeps; on a busy machine it wakes late
    assert doing.search(told.inner_text())
    assert "app.py:4 in price" in told.locator(".frames").inner_text()
    assert "time.sleep" in page.locator(".code .line.now").inner_text()
    page.mouse.down()
    page.mouse.move(lane["x"] + lane["width"] * 0.75, lane["y"] + 5, steps=3)
    page.mouse.up()
    assert doing.search(told.inner_text())
    assert " ms to " in graph.inner_text()
    quarter = page.evaluate(
        "() => { const { tree, course } = { tree: window.d3.select('.flame').datum().data,"
        " course: JSON.parse(document.getElementById('course-data').textContent) };"
        " return tree.value / course.length; }"
    )
    assert 0.2 < quarter < 0.3
    assert axe_findings(page) == []
    page.locator(".scrub").focus()
    page.keyboard.press("Escape")
    assert graph.inner_text() == "Whole graph"
    page.keyboard.press("ArrowRight")
    assert "At " in told.inner_text()
    assert page.locator(".scrub").get_attribute("aria-valuetext").startswith("At ")


def test_a_folded_flame_graph_keeps_the_programs_own_frames(visit: Visit):
    page = visit.to("/")
    page.evaluate(
        """async () => {
            const part = (name, own, value, children = []) => ({ name, place: "", own, value, children });
            const inner = (name) => part(name, false, 2, [part("json", false, 2, [part("mine", true, 2)])]);
            const tree = part("all", false, 4, [part("lib", false, 4, [inner("a"), inner("b")])]);
            document.body.innerHTML = '<div data-flame="x"></div><script id="x" type="application/json">'
                + JSON.stringify(tree) + '</' + 'script>';
            for (const name of ["d3-selection", "d3-flamegraph"]) {
                await new Promise((done) => {
                    const script = document.createElement("script");
                    script.src = `/static/vendor/${name}.min.js`;
                    script.onload = done;
                    document.body.append(script);
                });
            }
            (await import("/static/flames.js")).drawFlames(document);
        }"""
    )
    assert page.locator("g.frame").count() == 8
    page.get_by_label("Fold libraries").click()
    labels = page.locator("g.frame").evaluate_all("all => all.map((one) => one.getAttribute('aria-label'))")
    assert [label.partition(":")[0] for label in labels] == ["all", "lib", "mine"]


def test_a_flame_graph_is_as_wide_as_its_card(visit: Visit):
    page = visit.to(visit.address_of("/", ".rank a"))
    page.locator(".flame g.frame").first.wait_for()
    for width in (700, 390, 1400):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(
            "() => { const place = document.querySelector('.flame');"
            " return +place.querySelector('svg').getAttribute('width') === place.clientWidth"
            " && +place.querySelector('g.frame rect').getAttribute('width') === place.clientWidth; }"
        )


def test_on_a_phone_what_to_do_comes_before_the_source(visit: Visit):
    page = visit.to(visit.address_of("/", ".rank a"))
    for width, is_first in ((390, True), (1400, False)):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(
            "first => { const top = name => document.getElementById(name).getBoundingClientRect().top;"
            " return (top('do-title') < top('why-title')) === first; }",
            arg=is_first,
        )
    page.set_viewport_size({"width": 390, "height": 900})
    visit.to("/groups")
    word = "td => getComputedStyle(td, '::before').content"
    assert "median" in page.locator("td[data-word=median]").first.evaluate(word)


@pytest.mark.parametrize(
    ("scheme", "width", "store"),
    [("light", 1400, "address"), ("dark", 390, "address"), ("light", 390, "hostile")],
)
def test_every_page_is_accessible_and_fits(
    chromium: Any, request: pytest.FixtureRequest, scheme: str, width: int, store: str
):
    told = request.getfixturevalue(store)
    visit = Visit(chromium, told, color_scheme=scheme, viewport={"width": width, "height": 900})
    for path in [*paths(visit), *(TRACED if store == "hostile" else [])]:
        page = visit.to(path)
        if store != "hostile" or path in TRACED:  # the others are judged with texts as they are
            assert axe_findings(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
    assert visit.wrong == []
    visit.context.close()


def test_every_page_reads_without_scripts(chromium: Any, address: str):
    visit = Visit(chromium, address, java_script_enabled=False)
    for path in paths(visit):
        assert visit.to(path).locator("h1").count() == 1
    assert visit.wrong == []
    visit.context.close()


def test_nothing_hostile_runs(chromium: Any, hostile: str):
    visit = Visit(chromium, hostile)
    dialogs: list[str] = []
    visit.page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    rows = visit.to("/groups").locator(".groups a[href^='/group']")
    addresses = [rows.nth(index).get_attribute("href") for index in range(rows.count())]
    assert len(addresses) == len(HOSTILE) + 1
    for path in addresses:
        page = visit.to(path)
        stalls = page.locator("#latest tbody a")
        visit.to(stalls.first.get_attribute("href"))
    for list_of, one in (("/startup", "/issue?"), ("/methods", "/issue?")):
        links = visit.to(list_of).locator(f"main td a[href^='{one}']")
        addresses = [links.nth(index).get_attribute("href") for index in range(links.count())]
        assert len(addresses) == len(HOSTILE) + 1
        for path in addresses[::3]:
            assert visit.to(path).locator(".tree li").count() >= 1
    assert dialogs == []
    assert visit.wrong == []
    visit.context.close()


def test_rows_of_a_tree_fold_by_keyboard_and_mouse(chromium: Any, hostile: str):
    visit = Visit(chromium, hostile)
    page = visit.to(TRACED[1])
    leaf = page.locator(".tree .leaf", has_text="parse").last  # the first is that by function
    assert leaf.is_visible()
    page.locator(".tree summary", has_text="handle").focus()
    page.keyboard.press("Enter")
    leaf.wait_for(state="hidden")
    page.locator(".tree summary", has_text="handle").click()
    leaf.wait_for(state="visible")
    assert visit.wrong == []
    visit.context.close()


def test_a_waterfall_is_zoomed_by_pointer_and_by_keys(chromium: Any, hostile: str):
    """The start: 12 s, `import pandas` from 4 to 10 in `import shop.orders` from 3 to 11."""
    visit = Visit(chromium, hostile)
    page = visit.to(TRACED[0])
    slider, shown = page.get_by_role("slider"), page.locator(".tree .tree-name:visible")
    told, rows = page.locator(".flame-tools output"), shown.count()
    bar = page.locator(".leaf", has_text="warm the cache").locator(".tree-bar")
    bar.scroll_into_view_if_needed()
    box = bar.bounding_box()
    for second, do in ((4.5, page.mouse.down), (9.5, page.mouse.up)):
        page.mouse.move(box["x"] + box["width"] * second / 12, box["y"] + 3, steps=3)
        do()
    assert [one.strip() for one in shown.all_inner_texts()] == [
        "until the application is ready",
        "import shop.orders",
        "import pandas",
    ]
    assert re.fullmatch(r"4\.[45]\d s to 9\.[45]\d s", told.inner_text())
    assert page.locator(".waterfall .ticks text").all_text_contents() == ["5 s", "6 s", "7 s", "8 s", "9 s"]
    assert axe_findings(page) == []
    page.get_by_role("button", name="Whole start").click()
    assert (shown.count(), told.inner_text()) == (rows, "0 to 12.0 s")
    slider.focus()
    for key in ("End", "ArrowLeft", "Shift+End"):
        page.keyboard.press(key)
    assert told.inner_text() == "11.0 s to 12.0 s"
    page.keyboard.press("Enter")
    assert [one.strip() for one in shown.all_inner_texts()] == ["warm the cache"]
    page.keyboard.press("Escape")
    assert shown.count() == rows
    page.locator(".leaf", has_text="pandas").locator(".tree-bar").click()  # in the middle, where it is
    assert told.inner_text() == "4.00 s to 10.00 s"
    assert visit.wrong == []
    visit.context.close()


@pytest.fixture(scope="module")
def large(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A store of 20,000 stalls of 400 bugs."""
    folder = tmp_path_factory.mktemp("large") / "store"
    store = Store(folder, retention=Retention(age_ns=1 << 62, stalls=20_000, bytes=1 << 40))
    assert STALL.culprit is not None
    for begin in range(0, 20_000, 2_000):
        store.put(
            [SESSION],
            [
                stall(
                    id=f"s1-{number}",
                    fingerprint=f"1:{number % 400:04}",
                    title=f"json.loads(body) in load_{number % 400} (orders.py:87)",
                    cause=Cause.LOCK if number % 400 < 60 else Cause.NATIVE_CPU,
                    began_wall_ns=STALL.began_wall_ns + number * 1_000_000_000,
                    duration_ns=200_000_000 + (400 - number % 400) * 1_000_000,
                )
                for number in range(begin, begin + 2_000)
            ],
        )
    store.close()
    with served({**environment, "LOOPCANARY_RETENTION": "36500d"}, folder) as address:
        yield address


def test_a_large_store_is_filtered_paged_and_opened(chromium: Any, large: str):
    visit = Visit(chromium, large)
    page = visit.to("/groups")
    rows = page.locator(".groups tbody tr")
    assert rows.count() == 50
    assert "20,000 stalls in 400 bugs" in page.locator("#groups").inner_text()
    page.get_by_role("link", name="Further").click()
    page.get_by_text("2 of 8").wait_for()
    assert rows.first.locator("td").first.inner_text() == "51"
    page.get_by_label("Cause").select_option("lock")
    page.get_by_role("button", name="Filter").click()
    page.get_by_text("3,000 stalls in 60 bugs").wait_for()
    page.get_by_role("link", name="Further").click()
    page.get_by_text("2 of 2").wait_for()
    assert rows.count() == 10
    page.get_by_label("Text").fill("load_59 ")
    page.get_by_label("Text").press("Enter")
    page.get_by_text("50 stalls in 1 bug,").wait_for()
    page.get_by_role("link", name="load_59").click()
    page.locator(".flame svg").wait_for()
    assert "50 stalls" in page.locator(".figures").first.inner_text()
    assert page.locator("#latest tbody tr").count() == 20
    assert visit.wrong == []
    visit.context.close()


def test_filters_narrow_the_list(visit: Visit):
    page = visit.to("/groups")
    page.get_by_label("Cause").select_option("dns")
    page.get_by_role("button", name="Filter").click()
    page.get_by_text("Nothing matches").wait_for()
    page.get_by_role("link", name="Reset").click()
    page.get_by_label("Text").fill("price")
    page.get_by_label("Text").press("Enter")
    page.locator(".groups tbody tr").first.wait_for()
    assert "text=price" in page.url


def test_a_stall_is_copied(chromium: Any, address: str):
    visit = Visit(chromium, address, permissions=["clipboard-read", "clipboard-write"])
    visit.to(visit.address_of(visit.address_of("/", ".rank a"), ".figures a"))
    visit.page.get_by_role("button", name="Copy as Markdown").click()
    visit.page.get_by_text("Copied.").wait_for()
    assert "time.sleep(0.25)" in visit.page.evaluate("navigator.clipboard.readText()")
    visit.context.close()


def test_another_origin_gets_nothing(chromium: Any, address: str, tmp_path: Path):
    """With the cookie in the same browser: by fetch, by frame, by window, by form."""
    visit = Visit(chromium, address)
    (tmp_path / "evil.html").write_text("<h1>evil</h1>")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    handler.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        evil = visit.context.new_page()
        evil.goto(f"http://127.0.0.1:{other.server_port}/evil.html")
        told = evil.evaluate(
            """async (origin) => {
                const tried = async (options) => {
                    try {
                        return (await (await fetch(origin + "/groups", options)).text());
                    } catch { return ""; }
                };
                const given = {credentials: "include"};
                return [await tried(given), await tried({mode: "no-cors", ...given})];
            }""",
            visit.origin,
        )
        assert told == ["", ""]
        with evil.expect_popup() as opened:
            evil.evaluate("(origin) => { window.open(origin + '/groups'); }", visit.origin)
        opened.value.wait_for_load_state()
        assert "Requests of other sites are refused" in opened.value.content()
        other.shutdown()
    visit.context.close()


def test_a_note_is_kept_and_ignoring_hides(visit: Visit):
    group = visit.address_of("/", ".rank a")
    page = visit.to(group)
    page.get_by_label("Note").fill("TICKET-9 </script>")
    page.get_by_label("Ignore (hide from lists)").check()
    with page.expect_navigation():
        page.get_by_role("button", name="Save").click()
    assert page.get_by_label("Note").input_value() == "TICKET-9 </script>"
    listed = f".groups a[href='{group}']"  # among others, of a busy machine
    assert visit.to("/groups").locator(listed).count() == 0
    page = visit.to(group)
    page.get_by_label("Ignore (hide from lists)").uncheck()
    with page.expect_navigation():
        page.get_by_role("button", name="Save").click()
    assert visit.to("/groups").locator(listed).count() == 1


def test_a_new_stall_appears_and_can_be_deleted(visit: Visit, program: subprocess.Popen[str]):
    page = visit.to("/groups")
    assert page.get_by_text(re.compile("in late")).count() == 0
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write("\n")
    program.stdin.flush()
    assert program.stdout.readline() == "late\n"
    page.get_by_text(re.compile("in late")).first.wait_for()
    page.get_by_text(re.compile("in late")).first.click()
    page.get_by_role("link", name="Delete …").click()
    page.get_by_role("button", name="Delete").click()
    page.wait_for_url("**/groups")
    assert page.get_by_text(re.compile("in late")).count() == 0

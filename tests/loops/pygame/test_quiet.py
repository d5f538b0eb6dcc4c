"""Games in which nothing blocks are no stalls."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from tests.program.watching import Watched, unexplained

from .test_games import PRELUDE

pytestmark = pytest.mark.native

QUIET = {
    "sixty frames a second": """
for _ in range(120):
    pygame.event.get()
    pygame.display.flip()
    clock.tick(60)
""",
    "a paused game that waits for an event": """
pygame.display.flip()
threading.Timer(1.2, lambda: pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=1))).start()
while pygame.event.wait().type != pygame.KEYDOWN:
    pass
for _ in range(10):
    pygame.display.flip()
    clock.tick(60)
""",
    "a paused game that looks for events now and then": """
pygame.display.flip()
until = time.monotonic() + 1.5
while time.monotonic() < until:
    pygame.event.get()
    clock.tick(20)
for _ in range(10):
    pygame.display.flip()
    clock.tick(60)
""",
    "five frames a second": """
for _ in range(8):
    pygame.event.get()
    pygame.display.flip()
    clock.tick(5)
""",
    "a loading screen": """
loaded = []
def load():
    for _ in range(30):
        time.sleep(0.04)
    loaded.append(1)
threading.Thread(target=load).start()
while not loaded:
    pygame.event.pump()
    pygame.display.update()
    clock.tick(60)
""",
    "a thread that waits by pygame's means": """
worker = threading.Thread(target=lambda: [pygame.time.wait(300), time.sleep(0.3)])
pygame.display.flip()
worker.start()
while worker.is_alive():
    pygame.display.flip()
    clock.tick(60)
""",
    "a wait of the game's own": """
pygame.display.flip()
pygame.time.wait(400)
pygame.time.delay(200)
pygame.display.flip()
""",
    "loading in pieces that looks for events": """
pygame.display.flip()
for _ in range(120):
    time.sleep(0.01)  # a busy host makes 40 ms a stall
    pygame.event.pump()
""",
}
SMOOTH = (
    "a paused game that waits for an event",
    "a paused game that looks for events now and then",
    "five frames a second",
)
LOADS_AT_FIRST = "time.sleep(0.4)\n"
CLEANS_UP_AT_LAST = "pygame.quit()\ntime.sleep(0.4)\n"


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of a game that goes through all of these, each in a scene of its own."""
    watched = Watched(store=tmp_path_factory.mktemp("quiet") / "store", engine="native")
    scenes = [
        f"with loopcanary.scene({name!r}):\n" + textwrap.indent("pygame.display.flip()" + code, "    ")
        for name, code in QUIET.items()
    ]
    parts = [PRELUDE, "import loopcanary\n", LOADS_AT_FIRST, *scenes, CLEANS_UP_AT_LAST]
    watched.run("-c", "".join(parts))
    return watched.report()


@pytest.mark.parametrize("story", QUIET)
def test_is_no_stall(quiet, story):
    assert unexplained(stall for stall in quiet["stalls"] if stall["scene"] == story) == []
    (session,) = quiet["sessions"]
    assert story in {scene["scene"] for scene in session["frames"]}


def test_nothing_is_watched_outside_the_frames(quiet):
    assert unexplained(quiet["stalls"]) == []
    (session,) = quiet["sessions"]
    assert {loop["kind"] for loop in session["loops"]} == {"pygame"}


@pytest.mark.parametrize("story", SMOOTH)
def test_is_no_frozen_frame(quiet, story):
    if any(stall["scene"] == story for stall in quiet["stalls"]):
        pytest.skip("the machine stopped the game")
    (session,) = quiet["sessions"]
    assert sum(scene["frozen"] for scene in session["frames"] if scene["scene"] == story) == 0

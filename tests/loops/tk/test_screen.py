"""The screen's refresh rate, of whatever X server there is."""

from __future__ import annotations

import pytest

from .test_frames import run
from .x_server import x_server

pytestmark = pytest.mark.native


def test_a_server_without_randr_has_no_rate():
    with x_server("-extension", "RANDR") as display:
        rates = run(
            """
def draw(times):
    canvas.move(ball, 1, 1)
    root.after(20, *([draw, times - 1] if times else [root.destroy]))

comes_up()
draw(10)
root.mainloop()
print(json.dumps(sorted({frame.refresh_hz for frame in shown})))
""",
            DISPLAY=display,
        )
    assert rates == [60.0]

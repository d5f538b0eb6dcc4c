"""A handler makes a picture smaller by Pillow."""

from __future__ import annotations

from PIL import Image
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"], "needs": ["Pillow"], "advice": ["to_thread"]}


def thumbnail(picture):
    return picture.resize((400, 300), Image.Resampling.LANCZOS)  # <- culprit


async def handler():
    with measured():
        thumbnail(PICTURE)


if __name__ == "__main__":
    WIDTH = sized(lambda width: thumbnail(Image.new("RGB", (width, 2000))), 0.35, start=500)
    PICTURE = Image.new("RGB", (WIDTH, 2000))
    run(handler)

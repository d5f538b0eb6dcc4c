"""A handler encodes a picture as PNG by Pillow."""

from __future__ import annotations

import io

from PIL import Image
from zoo.stage import measured, run, sized

EXPECT = {"cause": ["native-cpu"], "needs": ["Pillow"], "advice": ["to_thread"]}


def encode(picture):
    picture.save(io.BytesIO(), "PNG")  # <- culprit


def picture_of(width):
    return Image.effect_noise((width, 1000), 90)


async def handler():
    with measured():
        encode(PICTURE)


if __name__ == "__main__":
    PICTURE = picture_of(sized(lambda width: encode(picture_of(width)), 0.35, start=100))
    run(handler)

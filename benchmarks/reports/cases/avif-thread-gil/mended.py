"""A gallery decodes a large AVIF picture in a process while its window shows a spinner."""

from __future__ import annotations

import os
import tempfile
import time
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")

import pygame
from PIL import Image


def decode(path: str) -> tuple[bytes, tuple[int, int]]:
    with Image.open(path) as picture:
        picture.load()
        small = picture.reduce(8)
    return small.tobytes(), small.size


def paint_picture(path: str) -> None:
    noise = Image.effect_noise((1280, 960), 60)
    picture = Image.merge("RGB", (noise, noise.transpose(Image.Transpose.ROTATE_180), noise))
    large = Image.new("RGB", (3840, 1920))
    for x in range(0, 3840, 1280):
        for y in range(0, 1920, 960):
            large.paste(picture, (x, y))
    large.save(path, "AVIF", quality=90, speed=10)


def main(path: str) -> None:
    paint_picture(path)
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    pool.submit(os.getpid).result()
    pygame.display.init()
    screen = pygame.display.set_mode((640, 480))
    clock = pygame.time.Clock()
    loading: Future[tuple[bytes, tuple[int, int]]] | None = None
    shown: pygame.Surface | None = None
    angle = 0
    frames: list[float] = []
    began_at = time.monotonic()
    last = time.perf_counter()
    while time.monotonic() < began_at + 4:
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                return
        if loading is None and time.monotonic() > began_at + 1:
            loading = pool.submit(decode, path)
        if loading is not None and loading.done() and shown is None:
            pixels, size = loading.result()
            shown = pygame.image.frombuffer(pixels, size, "RGB")
        screen.fill("black")
        if shown:
            screen.blit(shown, (80, 120))
        angle = (angle + 6) % 360
        pygame.draw.line(screen, "white", (320, 240), pygame.Vector2(320, 240) + pygame.Vector2(60, 0).rotate(angle), 4)
        pygame.display.flip()
        clock.tick(60)
        now = time.perf_counter()
        frames.append(now - last)
        last = now
    pool.shutdown()
    pygame.quit()
    frames.sort()
    print(f"{len(frames)} frames, half above {frames[len(frames) // 2] * 1000:.0f} ms, worst {frames[-1] * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(os.path.join(folder, "picture.avif"))

"""A game fades its music out when it is over, and goes on drawing meanwhile."""

from __future__ import annotations

import array
import math
import os
import tempfile
import time
import wave

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")

import pygame

FADE_MS = 2000


def compose(path: str) -> None:
    samples = array.array("h", (int(9000 * math.sin(n * 220 * math.tau / 22050)) for n in range(22050 * 4)))
    with wave.open(path, "wb") as song:
        song.setnchannels(1)
        song.setsampwidth(2)
        song.setframerate(22050)
        song.writeframes(samples.tobytes())


def main(folder: str) -> None:
    song = os.path.join(folder, "song.wav")
    compose(song)
    pygame.mixer.init(22050, -16, 1, 1024)
    pygame.display.init()
    screen = pygame.display.set_mode((640, 360))
    pygame.mixer.music.load(song)
    pygame.mixer.music.play(-1)
    clock = pygame.time.Clock()
    over, silent_after, x = 0.0, 0.0, 0
    frames: list[float] = []
    until = time.monotonic() + 5
    while time.monotonic() < until:
        began = time.perf_counter()
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                return
        if not over and time.monotonic() > until - 4:
            over = time.monotonic()
            pygame.mixer.music.fadeout(FADE_MS)
        if over and not silent_after and not pygame.mixer.music.get_busy():
            silent_after = time.monotonic() - over
        x = (x + 3) % 640
        screen.fill("darkred" if over else "navy")
        pygame.draw.circle(screen, "white", (x, 180), 20)
        pygame.display.flip()
        frames.append(time.perf_counter() - began)
        clock.tick(60)
    pygame.quit()
    frames.sort()
    print(f"silent {silent_after:.1f} s after the end; {len(frames)} frames, worst {frames[-1] * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)

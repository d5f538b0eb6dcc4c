"""A game fades the music of its menu out when the level starts, and plays that of the level when it is silent."""

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

FADE_MS = 1500


class Jukebox:
    def __init__(self, first: str) -> None:
        self.wanted = ""
        pygame.mixer.music.load(first)
        pygame.mixer.music.play(-1)

    def change(self, song: str) -> None:
        pygame.mixer.music.fadeout(FADE_MS)
        self.wanted = song

    def update(self) -> None:
        if self.wanted and not pygame.mixer.music.get_busy():
            pygame.mixer.music.load(self.wanted)
            pygame.mixer.music.play(-1)
            self.wanted = ""
        pygame.display.set_caption(f"volume {pygame.mixer.music.get_volume():.1f}")


def compose(path: str, tone: float) -> None:
    samples = array.array("h", (int(9000 * math.sin(n * tone * math.tau / 22050)) for n in range(22050 * 4)))
    with wave.open(path, "wb") as song:
        song.setnchannels(1)
        song.setsampwidth(2)
        song.setframerate(22050)
        song.writeframes(samples.tobytes())


def main(folder: str) -> None:
    songs = {"menu": os.path.join(folder, "menu.wav"), "level": os.path.join(folder, "level.wav")}
    compose(songs["menu"], 220)
    compose(songs["level"], 330)
    pygame.mixer.init(22050, -16, 1, 1024)
    pygame.display.init()
    screen = pygame.display.set_mode((640, 360))
    jukebox = Jukebox(songs["menu"])
    clock = pygame.time.Clock()
    scene, x = "menu", 0
    frames: list[float] = []
    began_at = time.monotonic()
    while time.monotonic() < began_at + 5:
        began = time.perf_counter()
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                return
        if scene == "menu" and time.monotonic() > began_at + 1.2:
            scene = "level"
            jukebox.change(songs["level"])
        jukebox.update()
        x = (x + 3) % 640
        screen.fill("navy" if scene == "menu" else "darkgreen")
        pygame.draw.circle(screen, "white", (x, 180), 20)
        pygame.display.flip()
        frames.append(time.perf_counter() - began)
        clock.tick(60)
    pygame.quit()
    frames.sort()
    print(f"{len(frames)} frames, half above {frames[len(frames) // 2] * 1000:.0f} ms, worst {frames[-1] * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)

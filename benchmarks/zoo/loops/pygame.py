"""A game of pygame's: sixty frames a second, in which programs play."""

from __future__ import annotations

import time
from collections.abc import Callable

import pygame

from zoo.loops.steps import CallbackHost

FRAMES_A_SECOND = 60


class PygameHost(CallbackHost):
    """Programs are called between looking for events and drawing."""

    def __init__(self) -> None:
        pygame.display.init()
        self.screen = pygame.display.set_mode((320, 200))
        self.on_event: Callable[[pygame.event.Event], None] = lambda _: None
        self.running = True
        self._due: list[tuple[float, Callable[[], None]]] = []
        self._frames = 0

    def later(self, seconds: float, function: Callable[[], None]) -> None:
        """See CallbackHost."""
        self._due.append((time.monotonic() + seconds, function))

    def loop(self) -> None:
        """See CallbackHost."""
        clock = pygame.time.Clock()
        while self.running:
            for event in pygame.event.get():
                self.on_event(event)
            self._call_what_is_due()
            self.draw()
            clock.tick(FRAMES_A_SECOND)
        pygame.quit()

    def draw(self) -> None:
        """One frame: a ball on its way."""
        self._frames += 1
        self.screen.fill((10, 20, 30))
        pygame.draw.circle(self.screen, (240, 200, 0), (self._frames % 320, 100), 10)
        pygame.display.flip()

    def leave(self) -> None:
        """See CallbackHost."""
        self.running = False

    def _call_what_is_due(self) -> None:
        now = time.monotonic()
        due = [function for at, function in self._due if at <= now]
        self._due = [(at, function) for at, function in self._due if at > now]
        for function in due:
            function()


HOST = PygameHost()

"""Saved games, synced to the disk after each rock: nothing gets lost, but for a quarter of a second."""

from __future__ import annotations

import json
import os

from levels import FOLDER


def save(game):
    rocks = [vars(rock) for rock in game.rocks]
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / "saved.json").open("w") as file:
        for rock in rocks * 40:
            file.write(json.dumps(rock) + "\n")
            file.flush()
            os.fsync(file.fileno())

from __future__ import annotations

import subprocess
import sys

# Stands for a renderer that takes its time.
RENDERER = "import sys, time; time.sleep(0.2); print('label of', sys.argv[1])"


def render(order: str) -> str:
    done = subprocess.run([sys.executable, "-c", RENDERER, order], capture_output=True, text=True, check=True)
    return done.stdout

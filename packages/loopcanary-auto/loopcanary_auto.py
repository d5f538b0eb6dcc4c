"""Starts loopcanary in a program that does not mention it, where the environment has LOOPCANARY=1.

`loopcanary_auto.pth`, at the root of site-packages, imports this module only then.
"""

from __future__ import annotations

import sys


def start() -> None:
    """Starts it before the program's first line; with `-E` and `-I`, which ignore the environment, does not.

    Raises nothing, also where loopcanary itself is missing or broken, or ends the process: the program must
    start. Control-C within these milliseconds is lost.
    """
    if sys.flags.ignore_environment:
        return
    try:
        from loopcanary._startup import start as start_core

        start_core()
    except BaseException:  # noqa: BLE001, S110 - stderr may have no reader; `loopcanary doctor` says what is missing
        pass

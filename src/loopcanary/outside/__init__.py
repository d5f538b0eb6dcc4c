"""Reads another process, as it is, without stopping it or running anything in it.

    processes    what /proc says of the process
    memory       its mapped files and its memory
    elf          symbols of a program or library that is mapped there
    interpreter  where its CPython is, and which version
    tasks        its threads as the kernel sees them
    descriptors  what a system call of a thread works on
    looking      all of it, put together

What is read is another program's and may be anything: every loop is bounded, every offset checked.
"""

from __future__ import annotations

from loopcanary.outside.errors import NotReadableError, OutsideError
from loopcanary.outside.interpreter import Interpreter, locate
from loopcanary.outside.looking import Found, look
from loopcanary.outside.memory import Memory
from loopcanary.outside.processes import Process

__all__ = [
    "Found",
    "Interpreter",
    "Memory",
    "NotReadableError",
    "OutsideError",
    "Process",
    "locate",
    "look",
]

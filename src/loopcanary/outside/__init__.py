"""Reads another process, without stopping it or running anything in it but the script of `attach`.

    processes    a process and its threads, as /proc shows them
    memory       its mapped files and its memory
    elf          symbols of a program or library that is mapped there
    interpreter  where its CPython is, and which version
    descriptors  what a system call of a thread works on
    tasks        the tasks of asyncio
    looking      all of it, put together
    mailbox      a script and a request for the process, and its answer
    remote       has the process run the script

The read data are another program's and may be anything: every loop is bounded, every offset checked.
"""

from __future__ import annotations

from loopcanary.outside.interpreter import Interpreter, locate
from loopcanary.outside.looking import Found, look
from loopcanary.outside.memory import Memory
from loopcanary.outside.processes import NotReadableError, OutsideError, Process

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

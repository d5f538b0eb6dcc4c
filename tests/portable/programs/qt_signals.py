"""Handlers of signals that raise while an application of Qt's has nothing to do. qt_signals.py BINDING"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from importlib import import_module

QtCore = import_module(f"{sys.argv[1]}.QtCore")
application = QtCore.QCoreApplication(sys.argv[:1])
told = []
AFTERWARDS_S = 2


class AlarmError(Exception):
    pass


def raises(*_):
    raise AlarmError


def elsewhere():
    told.append(application.exec())


def files_of(ident):
    """Whose functions the thread is in just now."""
    frame, files = sys._current_frames()[ident], set()
    while frame is not None:
        files.add(frame.f_code.co_filename)
        frame = frame.f_back
    return files


def run(signal_number):
    """What exec() raises where the signal comes in the midst of it, and no line of Python's until its end."""

    def sends():
        runs.wait()
        while threading.__file__ in files_of(main):
            time.sleep(0.001)  # Event.set, which Qt has called
        os.kill(os.getpid(), signal_number)
        time.sleep(AFTERWARDS_S)
        application.quit()

    runs, main = threading.Event(), threading.get_ident()
    thread = threading.Thread(target=sends)
    try:
        thread.start()
        QtCore.QTimer.singleShot(0, runs.set)
        application.exec()
    except (KeyboardInterrupt, AlarmError) as error:
        return type(error).__name__
    finally:
        thread.join()
    return None


thread = threading.Thread(target=elsewhere)
thread.start()
thread.join()
signal.signal(signal.SIGUSR1, raises)
told += [run(signal.SIGINT), run(signal.SIGUSR1)]
json.dump(told, sys.stdout)

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


def run(signal_number):
    """What exec() raises where the signal comes in the midst of it, and no line of Python's until its end."""

    def sends():
        time.sleep(0.2)
        os.kill(os.getpid(), signal_number)
        time.sleep(AFTERWARDS_S)
        application.quit()

    thread = threading.Thread(target=sends)
    try:
        thread.start()
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

"""Programs of benchmarks/zoo/kinds whose stall is a deadlock of threads."""

from __future__ import annotations

import runpy

from zoo import catalogue
from zoo.deadlocks.catalogue import asked, control, deadlock


def of_the_zoo(name):
    def program():
        runpy.run_path(str(catalogue.KINDS / f"{name}.py"), run_name="__main__")

    program.__name__ = name
    program.__doc__ = catalogue.read(catalogue.KINDS / f"{name}.py").summary
    return program


for _name, _cycle in {
    "deadlock_two_locks": {"MainThread": "lock that refunds", "refunds": "lock that MainThread"},
    "deadlock_three_rlocks": {
        "MainThread": "RLock that stock",
        "stock": "RLock that prices",
        "prices": "RLock that MainThread",
    },
    "deadlock_join": {"MainThread": "uploader", "uploader": "lock that MainThread"},
    "deadlock_loop": {"MainThread": "lock that importer", "importer": "result"},
    "deadlock_import": {"MainThread": "import", "preloader": "lock that MainThread"},
    "deadlock_future": {"MainThread": "result", "ThreadPoolExecutor-0_0": "lock that MainThread"},
}.items():
    deadlock(_cycle)(of_the_zoo(_name))
for _name in ("ok_busy_lock", "ok_locks_in_both_orders"):
    control(of_the_zoo(_name))

if __name__ == "__main__":
    asked()()

"""A gevent worker makes three reports at once, each with a slow query to PostgreSQL through psycopg 3."""

from gevent import monkey

monkey.patch_all()

import os
import shutil
import subprocess
import tempfile
import time

import gevent
import psycopg

AS_USER = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []


def start_postgres(folder: str) -> None:
    """PostgreSQL will not run as root."""
    if AS_USER:
        shutil.chown(folder, "postgres")
    initdb = os.path.realpath(shutil.which("initdb"))
    subprocess.run([*AS_USER, initdb, "-D", f"{folder}/data", "-U", "me", "-A", "trust", "--no-sync"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    pg_ctl(folder, "start", "-w", "-l", f"{folder}/log", "-o", f"-k {folder} -c listen_addresses= -c fsync=off")


def pg_ctl(folder: str, *order: str) -> None:
    program = os.path.realpath(shutil.which("pg_ctl"))
    subprocess.run([*AS_USER, program, "-D", f"{folder}/data", *order], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def make_report(address: str, name: str) -> None:
    with psycopg.connect(address) as connection:
        for part in ("orders", "returns"):
            began = time.perf_counter()
            connection.execute("select pg_sleep(0.6)")
            print(f"report {name}: {part} after {time.perf_counter() - began:.2f} s")
            gevent.sleep(0.1)


def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        gevent.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


def main(address: str) -> None:
    late: list[float] = []
    beats = gevent.spawn(heartbeat, late)
    gevent.sleep(0.3)
    gevent.joinall([gevent.spawn(make_report, address, name) for name in ("north", "south", "west")], raise_error=True)
    beats.kill()
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        start_postgres(place)
        try:
            main(f"host={place} user=me dbname=postgres")
        finally:
            pg_ctl(place, "stop", "-m", "immediate")

"""Shows loopcanary at work on the shop: `make demo`.

Makes a virtual environment of its own, serves the shop under `loopcanary run` while visitors come, then
twice until a request hangs and the process is killed, once with a keeper beside it, and prints what
`loopcanary report` knows of all, and how to see it in the browser, or send it to others.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def main() -> None:
    options = parse_options()
    store = options.folder / "store"
    shutil.rmtree(store, ignore_errors=True)
    binaries = provide_environment(options.folder / "venv", options.wheel)

    say(f"The shop under `loopcanary run`, {options.seconds} s of visitors")
    with shop(binaries, store) as (process, url):
        subprocess.run([binaries / "python", FOLDER / "load.py", url, str(options.seconds)], check=True)
        process.terminate()
        process.wait(timeout=30)

    say("The shop again: a request hangs, and after 3 s the process is killed (SIGKILL)")
    with shop(binaries, store) as (process, url):
        with contextlib.suppress(TimeoutError, urllib.error.URLError):
            urllib.request.urlopen(url + "/audit", timeout=3)
        process.kill()
        process.wait()

    say("With a keeper: C code holds the GIL in a regex, and it is said while it lasts; then SIGKILL")
    with shop(binaries, store, LOOPCANARY_KEEPER="1") as (process, url):
        with contextlib.suppress(TimeoutError, urllib.error.URLError):
            urllib.request.urlopen(url + "/contact", data=b"a" * 60 + b"!", timeout=6)
        process.kill()
        process.wait()

    say("What is known afterwards: `loopcanary report`")
    subprocess.run([binaries / "loopcanary", "report", "--store", store], check=True)

    say("The same in the browser: until Control-C, by")
    print(f"cd {FOLDER} && {binaries / 'loopcanary'} ui {store}")

    say("As one page in one file, to be sent to others, by")
    page = options.folder / "report.html"
    print(f"cd {FOLDER} && {binaries / 'loopcanary'} report --store {store} --format html -o {page}")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Shows loopcanary at work on a small service.")
    parser.add_argument("--wheel", type=Path, help="the loopcanary to show (default: the one of the index)")
    parser.add_argument(
        "--folder", type=Path, default=Path("build/demo"), help="for the environment and the store"
    )
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    return options


def provide_environment(folder: Path, wheel: Path | None) -> Path:
    """Installs loopcanary and what the shop needs; gives the folder of the programs."""
    if not (folder / "bin" / "pip").exists():
        venv.create(folder, with_pip=True)
    pip = [folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
    if wheel:
        subprocess.run([*pip, "--force-reinstall", "--no-deps", wheel], check=True)
    subprocess.run([*pip, f"{wheel or 'loopcanary'}[ui]", "aiohttp"], check=True)
    return folder / "bin"


@contextlib.contextmanager
def shop(binaries: Path, store: Path, **variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The shop, watched, and its address; it is gone afterwards whatever happened."""
    command = [binaries / "loopcanary", "run", "--startup", "--store", store, "--name", "shop", "-m", "shop"]
    environment = {**os.environ, **variables}
    with subprocess.Popen(command, cwd=FOLDER, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            word, _, port = process.stdout.readline().partition(" ")
            if word != "ready":
                sys.exit("the shop did not start")
            yield process, f"http://127.0.0.1:{port.strip()}"
        finally:
            process.kill()


def say(line: str) -> None:
    print(f"\n{line}\n{'-' * len(line)}", flush=True)


if __name__ == "__main__":
    main()

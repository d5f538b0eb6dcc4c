"""A Debian sid root folder with the newest CPythons, to run the tests in.

Made once by debootstrap (about a minute) and kept. What runs in it sees this tree, /proc, /sys, /dev and
this machine's certificates and pip settings by bind mounts in a mount namespace of its own: nothing is
copied into the root and no mount outlives its command.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shlex
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

# Without them nothing builds there; the interpreters are added as they are asked for.
_PACKAGES = ("ca-certificates", "gcc", "libc6-dev", "make")
_TREE_INSIDE = Path("/src/loopcanary")
_PASSED_ON = re.compile(
    r"^(CI|TERM|PIP_\w+|PYTEST_ADDOPTS|HYPOTHESIS_\w+|SSL_CERT_\w+|\w+_CA_BUNDLE|\w+_proxy|\w+_PROXY)$"
)
_CERTIFICATE_VARIABLES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_DEBIAN_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_PIP_CONFIGURATIONS = ("/etc/pip.conf", "/etc/xdg/pip/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf")


class SidRootError(Exception):
    """The root, or an interpreter in it, cannot be had; the message says why, as the end of a sentence."""


class SidRoot:
    """The root at one folder, which need not be there yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def provide(self, version: str) -> None:
        """Sees to it that this version of CPython is there; raises SidRootError where that can't be."""
        _need_root()  # to enter it, too
        if self._has(version):
            return
        with self._alone():
            if not (self._folder / "etc/debian_version").exists():
                self._make()
            if not self._has(version):
                self._install([f"python{version}", f"python{version}-dev", f"python{version}-venv"])

    def command(self, tree: Path, command: Sequence[str]) -> list[str]:
        """What to execute so that `command` runs inside, in a working folder that is `tree`."""
        inside = ["env", f"--chdir={_TREE_INSIDE}", *command]
        return self._enter([(tree, _TREE_INSIDE), *_pip_settings()], inside)

    def _has(self, version: str) -> bool:
        return (self._folder / f"usr/include/python{version}/Python.h").exists()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keeps another run of this script from making the same root at the same time."""
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        with self._folder.with_name(self._folder.name + ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _make(self) -> None:
        _need_debootstrap()
        print(f"making a Debian sid root in {self._folder}", flush=True)
        # Under another name until it is whole.
        partial = self._folder.with_name(self._folder.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        include = "--include=" + ",".join(_PACKAGES)
        debootstrap = ["debootstrap", "--variant=minbase", include, "sid", str(partial)]
        try:
            _run([*_namespace(), *debootstrap], "debootstrap failed")
            partial.rename(self._folder)
        except SidRootError:
            shutil.rmtree(partial, ignore_errors=True)
            raise

    def _install(self, packages: Sequence[str]) -> None:
        print(f"installing {' '.join(packages)} in {self._folder}", flush=True)
        # A mirror that lags gives a signed list past its date, which will do for tests.
        script = (
            "export DEBIAN_FRONTEND=noninteractive; apt-get update -qq -o Acquire::Check-Valid-Until=false"
            f" && apt-get install -y -qq --no-install-recommends {shlex.join(packages)}"
        )
        _run(
            self._enter([(Path("/etc/resolv.conf"),) * 2], ["sh", "-c", script]), f"sid gave no {packages[0]}"
        )

    def _enter(self, binds: Sequence[tuple[Path, Path]], command: Sequence[str]) -> list[str]:
        """The command in the root, with what it needs of the machine mounted for as long as it runs."""
        kernel = [(Path(name), Path(name)) for name in ("/proc", "/sys", "/dev")]
        script = ["set -e"]
        for source, target in (*kernel, *binds):
            mount_point = self._folder / target.relative_to("/")
            script.append(_mount(source.resolve(), mount_point))
        variables = [f"{name}={value}" for name, value in _environment().items()]
        script.append(shlex.join(["exec", "chroot", str(self._folder), "env", "-i", *variables, *command]))
        return [*_namespace(), "sh", "-c", "\n".join(script)]


def _namespace() -> list[str]:
    return ["unshare", "--mount", "--propagation", "private"]


def _mount(source: Path, mount_point: Path) -> str:
    place, origin = shlex.quote(str(mount_point)), shlex.quote(str(source))
    make = f"mkdir -p {place}" if source.is_dir() else f"mkdir -p $(dirname {place}); touch -a {place}"
    return f"{make}; mount --rbind {origin} {place}"


def _environment() -> dict[str, str]:
    own = {"HOME": str(Path.home()), "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/usr/sbin"}
    return own | {name: value for name, value in os.environ.items() if _PASSED_ON.match(name)}


def _pip_settings() -> Iterator[tuple[Path, Path]]:
    """What pip on this machine works with, and where it must be inside."""
    yield from _certificates()
    for path in sorted({Path("/etc/resolv.conf"), *_pip_configurations(), *_named_in_settings()}):
        if path.exists():
            yield path, path


def _certificates() -> Iterator[tuple[Path, Path]]:
    named = [os.environ.get(name) for name in _CERTIFICATE_VARIABLES]
    files = [
        Path(name)
        for name in (*named, ssl.get_default_verify_paths().cafile)
        if name and Path(name).is_file()
    ]
    if files:
        yield files[0], _DEBIAN_CERTIFICATES
    yield from ((path, path) for path in sorted(set(files) - {_DEBIAN_CERTIFICATES}))


def _pip_configurations() -> Iterator[Path]:
    named = os.environ.get("PIP_CONFIG_FILE")
    yield from (Path(name).expanduser() for name in (*_PIP_CONFIGURATIONS, *([named] if named else [])))


def _named_in_settings() -> Iterator[Path]:
    """Indexes, constraints and the like that pip's settings name by a path on this machine."""
    texts = [value for name, value in os.environ.items() if name.startswith("PIP_")]
    texts += [path.read_text(encoding="utf-8") for path in _pip_configurations() if path.is_file()]
    for word in " ".join(texts).split():
        path = Path(word.removeprefix("file://"))
        if path.is_absolute() and path.exists():
            # The pages of an index link to files beside it.
            yield path.parent if path.name == "simple" else path


def _need_root() -> None:
    if os.geteuid() != 0:
        raise SidRootError("a Debian root for it takes root")
    if (
        shutil.which("unshare") is None
        or subprocess.run([*_namespace(), "true"], check=False, capture_output=True).returncode
    ):
        raise SidRootError("this system lets nobody mount what a Debian root needs")


def _need_debootstrap() -> None:
    if shutil.which("debootstrap"):
        return
    if shutil.which("apt-get") is None:
        raise SidRootError("there is no debootstrap to make a Debian root with")
    packages = "debootstrap debian-archive-keyring"
    script = f"apt-get update -qq && apt-get install -y -qq --no-install-recommends {packages}"
    _run(["sh", "-c", script], "debootstrap cannot be installed")


def _run(command: Sequence[str], complaint: str) -> None:
    """Runs it quietly; where it fails, shows the end of what it said."""
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.stdout.write("".join(f"    {line}\n" for line in done.stdout.splitlines()[-15:]))
        raise SidRootError(complaint)

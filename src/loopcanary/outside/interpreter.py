"""Where the CPython of a process is, and which version it is."""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterable, Iterator, Sequence

from loopcanary.late_dataclass import dataclass
from loopcanary.outside import elf
from loopcanary.outside.memory import MappedFile, Memory, mapped_files, mappings
from loopcanary.outside.processes import OutsideError, Process

_RUNTIME = "_PyRuntime"
_VERSION = "Py_Version"
_WORD = struct.Struct("<Q")
_FILES_MAX = 2048
_LEVELS = {0xA: "a", 0xB: "b", 0xC: "rc"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """The CPython of a process, by the addresses of what it exports."""

    version_hex: int
    """PY_VERSION_HEX."""
    addresses: dict[str, int]
    file: MappedFile
    """The program or library with it."""

    @property
    def minor(self) -> tuple[int, int]:
        """`(3, 12)`"""
        return self.version_hex >> 24, self.version_hex >> 16 & 0xFF

    @property
    def version(self) -> str:
        """`3.12.1`, `3.15.0rc2`"""
        level = _LEVELS.get(self.version_hex >> 4 & 0xF)
        end = f"{level}{self.version_hex & 0xF}" if level else ""
        return f"{self.minor[0]}.{self.minor[1]}.{self.version_hex >> 8 & 0xFF}{end}"


def locate(process: Process, memory: Memory, symbols: Sequence[str]) -> Interpreter:
    """The interpreter of the process, with the addresses of `symbols`. OutsideError: none can be read, as
    there is no CPython, another architecture, or a version before 3.11."""
    files = mapped_files(mappings(process))
    _check_machine(process, memory, files)
    names = [_RUNTIME, _VERSION, *symbols]
    found, where = _search(process, memory, _in_order(process, files), names)
    if where is None:
        raise OutsideError(f"process {process.pid} {_what_instead(process, files)}")
    if _VERSION not in found:
        raise OutsideError(f"process {process.pid} runs a CPython before 3.11, which cannot be read")
    missing = [name for name in names if name not in found]
    if missing:
        raise OutsideError(
            f"the CPython of process {process.pid} ({where.path}) does not export {missing[0]}"
        )
    words = memory.words(_WORD, found[_VERSION])
    if words is None:
        process.check()
        raise OutsideError(f"the memory of process {process.pid} cannot be read")
    return Interpreter(version_hex=words[0], addresses=found, file=where)


def _search(
    process: Process, memory: Memory, files: Iterable[MappedFile], names: Sequence[str]
) -> tuple[dict[str, int], MappedFile | None]:
    """Takes the first file of each name, as the dynamic linker does: a program may have copies of a
    library's data."""
    found: dict[str, int] = {}
    where = None
    for file in files:
        image = elf.read_image(memory, file)
        if image is None:
            continue
        here = elf.exported(memory, file, image, [name for name in names if name not in found])
        if not here and not found and file.path == process.executable():
            here = elf.in_file(f"{process.folder}/exe", image, names)
        found = here | found
        if _RUNTIME in here:
            where = file
        if len(found) == len(names):
            break
    return found, where


def _in_order(process: Process, files: Sequence[MappedFile]) -> Iterator[MappedFile]:
    """The program itself, files named after Python, and the rest: a library may contain Python."""
    executable = process.executable()
    code = [file for file in files if file.executable][:_FILES_MAX]
    rank = {file: (file.path != executable, "libpython" not in file.name) for file in code}
    yield from sorted(code, key=lambda file: rank[file])


def _check_machine(process: Process, memory: Memory, files: Sequence[MappedFile]) -> None:
    own = elf.MACHINES.get(platform.machine().lower())
    if own is None:
        raise OutsideError(f"processes cannot be read on this machine ({platform.machine()})")
    for file in files:
        image = elf.read_image(memory, file) if file.executable else None
        if image is not None:
            if image.machine != own or not image.is_64_bit:
                raise OutsideError(
                    f"process {process.pid} runs a program for another architecture ({file.name})"
                )
            return


def _what_instead(process: Process, files: Sequence[MappedFile]) -> str:
    names = [file.name for file in files]
    if any("pypy" in name for name in names):
        return "runs PyPy, which cannot be read"
    if any(name.startswith(("libpython", "python")) for name in names):
        return "runs a Python whose symbols were stripped, which cannot be read"
    program = process.executable().rpartition("/")[2] or "an unknown program"
    return f"does not run Python: it is {program}"

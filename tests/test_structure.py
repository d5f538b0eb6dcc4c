"""The architecture of docs/architecture.md, read off the sources: a star, not a ladder."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("structure")  # one process parses the sources

TREE = Path(__file__).resolve().parents[1]
PACKAGE = TREE / "src" / "loopcanary"

# What every part may import.
CENTRE = frozenset(
    {
        "registry",
        "built_in",
        "facts",
        "late_dataclass",
        "whose_folder",
        "whose_stderr",
        "model",
        "wire",
        "words",
        "document",
        "protocols",
        "unpatched",
        "thread_frames",
        "patches",
        "whose_exception",
        "source_text",
    }
)
# How a watched program comes in, and what holds the parts together; no part imports these.
WIRING = frozenset({"__init__", "__main__", "_bootstrap", "_pyinstaller", "_startup", "assembly"})
# Beyond the centre and itself, and why.
MORE = {
    # A command is wiring too, of one run of a tool: it finds the store, opens it and has a report written.
    "cli": frozenset(
        {
            *("", "assembly", "bundles", "config", "exporters", "importers", "keeper", "notifications"),
            *("report", "reporters", "store", "top", "ui"),
        }
    ),
    # The pages tell what reports tell, with their figures and words.
    "ui": frozenset({"report"}),
    # The plugin of pytest is a program that is watched, and tells as the console does.
    "pytesting": frozenset({"", "reporters"}),
    # A recovery reads what processes left.
    "store": frozenset({"flight"}),
    # A program that judges its own stalls reads them out of its flight file, and hands them to the pipeline.
    "engine": frozenset({"flight", "pipeline"}),
    # Between guards and store: the one part of the way that every stall goes by.
    "pipeline": frozenset({"diagnosis"}),
    # The middlewares stand in programs: they use what programs use.
    "integrations": frozenset({""}),
}
# What runs inside the watched program needs nothing installed. The tools around it may use these.
LIBRARIES = {
    "_bootstrap": frozenset({"sitecustomize"}),  # the program's own, which ours hides
    "_pyinstaller": frozenset({"PyInstaller"}),  # which loads it where it freezes a program
    "cli": frozenset({"click", "rich"}),
    "exporters": frozenset({"google"}),  # protobuf, of pprof; extra `export`
    "notifications": frozenset({"desktop_notifier"}),  # extra `notify`; not loaded in the watched program
    "report": frozenset({"rich"}),
    "pytesting": frozenset({"pytest"}),
    "top": frozenset({"rich", "textual"}),
    "ui": frozenset({"anyio", "jinja2", "markupsafe", "starlette", "uvicorn"}),
}

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def part_of(module: str) -> str:
    """`loopcanary.store.sqlite.schema` -> `store`; `loopcanary` itself -> the empty string."""
    return module.partition(".")[2].partition(".")[0]


def part_of_file(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(path: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file imports, in functions too, with its line.

    `from loopcanary import store` names a part as much as `import loopcanary.store` does, and so does
    `import_module("loopcanary.store")`.
    """
    package = ["loopcanary", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Import(names=names):
                yield from ((name.name, node.lineno) for name in names)
            case ast.ImportFrom(module="loopcanary._native", names=[ast.alias(name="Native")]):
                pass  # a type of the stub's, for checkers: nothing is loaded
            case ast.ImportFrom(module=module, names=names, level=level):
                origin = (
                    ".".join([*package[: len(package) - level + 1], *([module] if module else [])])
                    if level
                    else module
                )
                if origin == "loopcanary":
                    yield from (
                        (f"loopcanary.{name.name}" if is_part(name.name) else "loopcanary", node.lineno)
                        for name in names
                    )
                else:
                    yield origin, node.lineno
            case ast.Call(
                func=ast.Name("import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(str() as name), *_],
            ):
                yield name, node.lineno


def is_part(name: str) -> bool:
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists() or name == "_native"


def breaches(path: Path) -> Iterator[str]:
    part = part_of_file(path)
    allowed = CENTRE | {part} | MORE.get(part, frozenset()) if part not in CENTRE else CENTRE
    for module, line in imported_modules(path):
        root = module.partition(".")[0]
        where = f"{path.relative_to(TREE)}:{line}"
        if root == "loopcanary":
            target = part_of(module)
            if target == "_native":
                if part != "engine" and part not in WIRING:
                    yield f"{where}: only the engine may import loopcanary._native"
            elif part not in WIRING and target not in allowed:
                yield f"{where}: {part} may not import {module}"
        elif root not in sys.stdlib_module_names and root not in LIBRARIES.get(part, frozenset()):
            yield f"{where}: {part} may not import the library {root}"


def test_a_part_imports_the_centre_and_itself_only():
    assert [breach for path in MODULES for breach in breaches(path)] == []


def test_no_module_imports_itself_through_others():
    """Imports that are for types, or in a function, count as well."""
    assert cycles({dotted(path): set(modules_imported(path)) for path in MODULES}) == []


def test_no_package_gives_a_name_that_its_module_has():
    """Where a setting makes all imports lazy (PEP 810), the module takes the name's place."""
    packages = [path for path in MODULES if path.name == "__init__.py"]
    given = {
        f"{path.parent.name}.{name}"
        for path in packages
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom)
        for name in (alias.asname or alias.name for alias in node.names)
        if (node.module or "").endswith(f".{name}") and (path.parent / f"{name}.py").exists()
    }
    assert given == set()


def dotted(path: Path) -> str:
    return ".".join(["loopcanary", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(
        ".__init__"
    )


NAMES = {dotted(path) for path in MODULES}


def modules_imported(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in NAMES)
        elif isinstance(node, ast.ImportFrom) and node.module in NAMES:
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in NAMES else str(node.module)


def cycles(imports: dict[str, set[str]]) -> list[set[str]]:
    """Modules that import each other, however far around."""
    reached: dict[str, set[str]] = {}
    for module in imports:
        found, ahead = set(), [module]
        while ahead:
            new = imports.get(ahead.pop(), set()) - found
            found |= new
            ahead += new
        reached[module] = found
    in_one = {
        frozenset(other for other in found if module in reached[other])
        for module, found in reached.items()
        if module in found
    }
    return sorted(map(set, in_one), key=sorted)


def test_the_model_imports_nothing_of_ours_but_how_it_is_made():
    model_imports = {
        module
        for path in MODULES
        if part_of_file(path) == "model"
        for module, _ in imported_modules(path)
        if module.startswith("loopcanary") and part_of(module) != "model"
    }
    assert model_imports == {"loopcanary.late_dataclass"}


def test_every_part_is_on_the_map(tree: Path):
    described = set(
        re.findall(
            r"^\| `loopcanary\.(\w+)`",
            (tree / "docs/architecture.md").read_text(encoding="utf-8"),
            re.MULTILINE,
        )
    )
    entrances = WIRING - {"assembly"}
    assert {part_of_file(path) for path in MODULES} - described - entrances == set()


def test_frames_of_other_threads_come_by_one_door():
    """`thread_frames`: beside interpreters with a GIL of their own these calls corrupt the heap."""
    makes = {"_current_frames", "_current_exceptions"}
    found = {
        f"{path.relative_to(TREE)}:{node.lineno}"
        for path in (*MODULES, *(TREE / "packages").rglob("*.py"))
        for node in ast.walk(parsed(path))
        if makes & {getattr(node, "attr", ""), getattr(node, "value", ""), getattr(node, "name", "")}
        and path != PACKAGE / "thread_frames.py"
    }
    assert found == set()


def test_no_python_that_we_start_looks_for_modules_in_the_current_folder():
    """-P, or -I which means it, too. What `run` starts is the user's program, by the user's flags."""
    starts = re.compile(r'sys\.executable,(?!\s*"-P",)')
    found = [file for file in MODULES if starts.search(file.read_text(encoding="utf-8"))]
    assert found == [PACKAGE / "cli/program.py"]


C_FILES = sorted((TREE / "native").rglob("*.[ch]"))
C_CIRCLES = ["core/lane", "cpython", "module"]
"""Folders in which files include each other in a circle."""


def test_the_core_sees_nothing_of_python():
    includes = re.compile(
        r'^\s*#\s*include\s*[<"](?:Python\.h|internal/|(?:\.\./)*(?:cpython|probes|module)/).*',
        re.MULTILINE,
    )
    for path in C_FILES:
        if path.is_relative_to(TREE / "native/core"):
            text = path.read_text(encoding="utf-8")
            found = includes.findall(text) + re.findall(r"\bPy[A-Z_]\w*\s*\(", strip_comments(text))
            assert found == [], path


def c_includes(path: Path) -> Iterator[str]:
    """What a file of C includes of ours, without suffixes: a header and its source are one."""
    for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE):
        if (TREE / "native" / name).exists():
            yield name.rpartition(".")[0]


def c_unit(path: Path) -> str:
    return path.relative_to(TREE / "native").with_suffix("").as_posix()


def test_no_file_of_c_includes_itself_through_others():
    includes: dict[str, set[str]] = defaultdict(set)
    for path in C_FILES:
        includes[c_unit(path)] |= {*c_includes(path)} - {c_unit(path)}
    assert [os.path.commonpath(circle) for circle in cycles(dict(includes))] == C_CIRCLES


def test_the_module_knows_no_probe():
    """But for what adds them to it, and for how a program's exit status is found."""
    includers = {
        c_unit(path)
        for path in C_FILES
        if path.is_relative_to(TREE / "native/module") and any("probes/" in name for name in c_includes(path))
    }
    assert includers == {"module/module", "module/exit_status"}


def test_layouts_of_cpython_are_data():
    """A version may be asked for only where its table is chosen: in files named after layouts."""
    condition = re.compile(
        r"^\s*#\s*(?:el)?if.*PY_(?:VERSION_HEX|MINOR_VERSION|MAJOR_VERSION).*", re.MULTILINE
    )
    asking = {
        path.name
        for path in C_FILES
        if path.is_relative_to(TREE / "native/cpython") and condition.search(path.read_text(encoding="utf-8"))
    }
    assert {name for name in asking if not name.startswith("layout")} == set()


def test_objects_of_python_in_statics_have_a_reason():
    """The module refuses subinterpreters: a static is right where no module is at hand. Its line, or the one
    before, says why."""
    static = re.compile(r"^static Py(?:Type)?Object \*\w+(?:\[\w+\])?;")
    bare = [
        f"{path.relative_to(TREE)}:{number}"
        for path in C_FILES
        for number, (before, line) in enumerate(
            pairwise(["", *path.read_text("utf-8").splitlines()]), start=1
        )
        if static.match(line) and "/*" not in line and "*/" not in before and not static.match(before)
    ]
    assert bare == []


def strip_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def test_no_file_names_a_folder_of_one_machine(tree: Path):
    """Paths and hosts of one machine mean nothing on the next."""
    if not (tree / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout, or no git to ask what is in it")
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=tree, capture_output=True, check=False)
    if listing.returncode:
        pytest.skip(listing.stderr.decode())
    personal = re.compile(rb"(?<![\w.])/(?:home/\w+|Users/\w+|work/|root/)")
    made_up = re.compile(rb"/home/(?:u|me|user)\b")
    found = {
        name.decode(): hits
        for name in listing.stdout.split(b"\0")
        if name and (path := tree / name.decode()).is_file()
        if (hits := [hit for hit in personal.findall(path.read_bytes()) if not made_up.match(hit)])
    }
    assert found == {}

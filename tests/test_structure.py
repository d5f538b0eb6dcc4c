"""The architecture of docs/architecture.md, read off the sources: a star, not a ladder."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
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
        "whose_stderr",
        "model",
        "wire",
        "words",
        "document",
        "protocols",
        "unpatched",
        "thread_frames",
    }
)
# How a watched program comes in, and what holds the parts together; no part imports these.
WIRING = frozenset({"__init__", "__main__", "_bootstrap", "_startup", "assembly"})
# Beyond the centre and itself, and why.
MORE = {
    # A command is wiring too, of one run of a tool: it finds the store, opens it and has a report written.
    "cli": frozenset(
        {
            *("", "assembly", "bundles", "config", "exporters", "importers", "keeper", "notifications"),
            *("report", "reporters", "store", "top", "ui", "uploads"),
        }
    ),
    # The pages tell what reports tell, with their figures and words.
    "ui": frozenset({"report"}),
    # The plugin of pytest is a program that is watched, and tells as the console does.
    "pytesting": frozenset({"", "reporters"}),
    # The middlewares stand in programs: they use what programs use.
    "integrations": frozenset({""}),
}
# What runs inside the watched program needs nothing installed. The tools around it may use these.
LIBRARIES = {
    "_bootstrap": frozenset({"sitecustomize"}),  # the program's own, which ours hides
    "cli": frozenset({"click", "rich"}),
    "exporters": frozenset({"google", "perfetto"}),  # of pprof and Perfetto; extra `export`
    "notifications": frozenset({"desktop_notifier"}),  # extra `notify`; not loaded in the watched program
    "report": frozenset({"rich"}),
    "pytesting": frozenset({"pytest"}),
    "top": frozenset({"rich", "textual"}),
    "uploads": frozenset({"httpx2"}),  # extra `upload`
    "ui": frozenset({"anyio", "jinja2", "markupsafe", "starlette", "uvicorn"}),
}

# What is left to do, in exact numbers: what fell is written down, what is done goes.
CYCLES: list[set[str]] = []
FOLDERS: dict[str, int] = {}
LONG_FILES: dict[str, int] = {}
LONG_FUNCTIONS: dict[str, int] = {}
WIDE_CLASSES = {
    "Top": 19,
    "_Pages": 20,
}
SHARED_NAMES = {"Clock"}
"""`Clock`: pygame's own, which ours stands for."""

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
    assert cycles({dotted(path): set(modules_imported(path)) for path in MODULES}) == CYCLES


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


def test_a_folder_has_twenty_files_at_most():
    pages = PACKAGE / "ui"
    folders = {path.parent for path in MODULES} | {pages / "templates", pages / "static"}
    sizes = {
        folder.relative_to(PACKAGE).as_posix(): sum(one.is_file() for one in folder.iterdir())
        for folder in folders
    }
    assert over(20, sizes) == FOLDERS


def test_a_file_has_four_hundred_lines_at_most():
    lines = {path.relative_to(PACKAGE).as_posix(): len(path.read_text().splitlines()) for path in MODULES}
    assert over(400, lines) == LONG_FILES


def test_a_function_has_fifty_lines_at_most():
    lines: dict[str, int] = defaultdict(int)
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                name = f"{path.relative_to(PACKAGE).as_posix()}: {node.name}"
                lines[name] = max(lines[name], node.end_lineno - node.lineno + 1)
    assert over(50, lines) == LONG_FUNCTIONS


def over(limit: int, sizes: dict[str, int]) -> dict[str, int]:
    return {name: size for name, size in sizes.items() if size > limit}


def test_a_class_has_fifteen_public_methods_at_most():
    """With properties, and with what it inherits from classes of ours."""
    ours = {node.name: node for _, node in classes()}
    assert over(15, {name: len(public_methods(name, ours)) for name in ours}) == WIDE_CLASSES


def public_methods(name: str, ours: dict[str, ast.ClassDef]) -> set[str]:
    own = {
        one.name
        for one in ours[name].body
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and not one.name.startswith("_")
    }
    inherited = (public_methods(base, ours) for base in map(base_name, ours[name].bases) if base in ours)
    return own.union(*inherited)


def base_name(node: ast.expr) -> str:
    """`Protocol`, of `Protocol`, `typing.Protocol` and `Protocol[T]`."""
    match node:
        case ast.Subscript(value=value):
            return base_name(value)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def classes() -> Iterator[tuple[Path, ast.ClassDef]]:
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                yield path, node


def test_no_two_classes_have_one_name():
    homes: dict[str, set[str]] = defaultdict(set)
    for path, node in classes():
        homes[node.name].add(path.relative_to(PACKAGE).as_posix())
    assert {name for name, files in homes.items() if len(files) > 1} - SHARED_NAMES == set()


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


C_FILES = sorted((TREE / "native").rglob("*.[ch]"))
# One contract, field by field: docs/internals/flight-format.md and its readers have it in one place, too.
LONG_C_FILES = {"core/flight/flight_format.h": 620}


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


def test_a_folder_of_c_holds_twenty_files_at_most():
    sizes = Counter(path.parent for path in C_FILES)
    assert {folder: size for folder, size in sizes.items() if size > 20} == {}


def test_a_c_file_has_four_hundred_lines_at_most():
    lines = {
        path.relative_to(TREE / "native").as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in C_FILES
    }
    assert over(400, lines) == LONG_C_FILES


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

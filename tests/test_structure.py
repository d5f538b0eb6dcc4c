"""The architecture of docs/architecture.md, read off the sources: a star, not a ladder."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[1]
PACKAGE = TREE / "src" / "loopcanary"

# What every part may import.
CENTRE = frozenset({"registry", "built_in", "model", "wire", "words", "document", "protocols", "unpatched"})
# How a watched program comes in, and what holds the parts together; no part imports these.
WIRING = frozenset({"__init__", "__main__", "_bootstrap", "_startup", "assembly"})
# Beyond the centre and itself, and why.
MORE = {
    # A command is wiring too, of one run of a tool: it finds the store, opens it and has a report written.
    "cli": frozenset(
        {
            *("", "assembly", "bundles", "config", "exporters", "notifications"),
            *("report", "reporters", "store", "top", "ui", "uploads"),
        }
    ),
    # The pages tell what reports tell, with their figures and words.
    "ui": frozenset({"report"}),
    # The middlewares stand in programs: they use what programs use.
    "integrations": frozenset({""}),
    # Types only: what scopes tell, and the canary that loops are told to.
    "portable": frozenset({"engine"}),
}
# What runs inside the watched program needs nothing installed. The tools around it may use these.
LIBRARIES = {
    "_bootstrap": frozenset({"sitecustomize"}),  # the program's own, which ours stands in front of
    "cli": frozenset({"click", "rich"}),
    "exporters": frozenset({"google", "perfetto"}),  # of pprof and Perfetto; extra `export`
    "notifications": frozenset({"desktop_notifier"}),  # extra `notify`; not loaded in the watched program
    "report": frozenset({"click", "rich"}),
    "top": frozenset({"rich", "textual"}),
    "uploads": frozenset({"httpx2"}),  # extra `upload`
    "ui": frozenset({"anyio", "jinja2", "markupsafe", "rich", "starlette", "uvicorn"}),
}

MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)


def part_of(module: str) -> str:
    """`loopcanary.store.schema` -> `store`; `loopcanary` itself -> the empty string."""
    return module.partition(".")[2].partition(".")[0]


def part_of_file(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(path: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file imports, wherever in it the import stands, with its line.

    `from loopcanary import store` names a part as much as `import loopcanary.store` does, and so does
    `import_module("loopcanary.store")`.
    """
    package = ["loopcanary", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_part_imports_the_centre_and_itself_only(path: Path):
    assert list(breaches(path)) == []


def test_the_centre_imports_nothing_of_ours():
    model_imports = {
        module
        for path in MODULES
        if part_of_file(path) == "model"
        for module, _ in imported_modules(path)
        if module.startswith("loopcanary") and part_of(module) != "model"
    }
    assert model_imports == set()


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


@pytest.mark.parametrize(
    "path",
    [path for path in C_FILES if path.is_relative_to(TREE / "native/core")],
    ids=lambda path: path.name,
)
def test_the_core_sees_nothing_of_python(path: Path):
    text = path.read_text(encoding="utf-8")
    assert (
        re.findall(
            r'^\s*#\s*include\s*[<"](?:Python\.h|internal/|(?:\.\./)*(?:cpython|probes|module)/).*',
            text,
            re.MULTILINE,
        )
        == []
    )
    assert re.findall(r"\bPy[A-Z_]\w*\s*\(", strip_comments(text)) == []


@pytest.mark.parametrize(
    "path",
    [path for path in C_FILES if path.is_relative_to(TREE / "native/cpython")],
    ids=lambda path: path.name,
)
def test_layouts_of_cpython_are_data(path: Path):
    """A version may be asked for only where its table is chosen: in files named after layouts."""
    conditions = re.findall(
        r"^\s*#\s*(?:el)?if.*PY_(?:VERSION_HEX|MINOR_VERSION|MAJOR_VERSION).*",
        path.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert conditions == [] or path.name.startswith("layout")


@pytest.mark.parametrize("folder", sorted({path.parent for path in C_FILES}), ids=lambda folder: folder.name)
def test_a_folder_of_c_holds_twenty_files_at_most(folder: Path):
    assert len([path for path in C_FILES if path.parent == folder]) <= 20


def strip_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def test_no_file_names_a_folder_of_somebodys_machine(tree: Path):
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

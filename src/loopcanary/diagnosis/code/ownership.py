"""Whose code a file is: the program's own, an installed package's, the standard library's, ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from enum import Enum
from functools import cache

from loopcanary.facts import code_paths
from loopcanary.late_dataclass import dataclass
from loopcanary.model.loop_frames import tail
from loopcanary.model.stack_frame import plain_cell

_INSTALLED_PARTS = ("/site-packages/", "/dist-packages/")
_OUR_PART = "-packages/loopcanary/"
_TEMPLATES = re.compile(
    r"\.(?:html?|xhtml|xml|svg|css|js|json|txt|md|rst|tex|csv|sql|ya?ml|toml|ini|cfg|conf|eml|sh"
    r"|j2|jinja2?|mako?|tmpl|tpl)(?:\.py)?$"
    r"|\.generated\.py$",
    re.IGNORECASE,
)
"""Files of which Jinja2, Mako and Tornado make Python code under the template's name, with lines of its own.
Templates called otherwise are known by who calls them: scripts have no suffix of Python's either."""
_STDLIB_PART = re.compile(r"/lib(?:64)?/python3\.\d+t?/|/lib/python3\d+\.zip/")


class Owner(Enum):
    """The owner of a frame's code."""

    OWN = "own"
    """The program: what its user can change. With `concern`: code of these packages only."""
    OTHER = "other"
    """The program's code, but outside the packages of concern."""
    INSTALLED = "installed"
    STDLIB = "stdlib"
    SYNTHETIC = "synthetic"
    """Code without a file of its own: `<string>` of exec and dataclasses, templates."""
    OURS = "ours"
    """loopcanary; never shown and never blamed."""


class Ownership:
    """Judges files by the folders of one process. Remembers its answers; not thread-safe."""

    def __init__(self, paths: CodePaths, concern: tuple[str, ...] = ()) -> None:
        self._paths = paths
        self._concern = tuple(f"/{package.replace('.', '/')}" for package in concern if package)
        kinds = (
            # Where two kinds claim the same folder, the later one wins.
            (Owner.STDLIB, paths.stdlib),
            (Owner.INSTALLED, paths.site),
            (Owner.OWN, paths.editable),
            (Owner.OURS, paths.ours),
        )
        self._roots = {folder: owner for owner, folders in kinds for folder in folders}
        self._known: dict[str, Owner] = {}

    def of(self, file: str) -> Owner:
        """The owner of a code object's file name."""
        owner = self._known.get(file)
        if owner is None:
            owner = self._known[file] = self._judge(file)
        return owner

    def of_function(self, file: str, qualname: str, callers: Iterable[str]) -> Owner:
        """The owner of one function of a file. `callers`: the files of the frames outside of it."""
        if file.startswith("<") or file == self._paths.main or not is_of_template(file, qualname, callers):
            return self.of(file)
        return Owner.SYNTHETIC

    def _judge(self, file: str) -> Owner:
        owner = self._by_place(file)
        if not self._concern or owner in (Owner.OURS, Owner.SYNTHETIC):
            return owner
        if self.is_in(file, self._concern):
            return Owner.OWN
        return Owner.OTHER if owner is Owner.OWN else owner

    def _by_place(self, file: str) -> Owner:
        if file.startswith("<"):
            return self._synthetic(file)
        if file != self._paths.main and not _is_python(file):
            return Owner.SYNTHETIC
        path = absolute(file, self._paths)
        folder = _longest_root(path, self._roots)
        owner = Owner.OWN if folder is None else self._roots[folder]
        inside = path if folder is None else path[len(folder) :]
        if owner is not Owner.OURS and any(part in inside for part in _INSTALLED_PARTS):
            # Of another environment: a zipapp, PYTHONPATH, a process whose paths are not known.
            return Owner.OURS if _OUR_PART in inside else Owner.INSTALLED
        if folder is None and _STDLIB_PART.search(path):
            return Owner.STDLIB  # of another interpreter: the process ran elsewhere
        return owner

    def _synthetic(self, file: str) -> Owner:
        if file == self._paths.main or file.startswith("<ipython-input"):
            return Owner.OWN
        return Owner.STDLIB if file.startswith("<frozen ") else Owner.SYNTHETIC

    def is_in(self, file: str, packages: tuple[str, ...]) -> bool:
        """Whether a file belongs to one of the packages, each written `/app/web`: a folder or a module of
        that name below a known root, or anywhere in the path of a file below none."""
        places = {f"/{place}" for place in relative_places(file, self._paths)}
        return any(
            f"{package}/" in place or place.endswith(f"{package}.py")
            for package in packages
            for place in places
        )


def _is_python(file: str) -> bool:
    """Whether the lines of the code are those of a file: not of a template, nor of what has a name only, as
    Mako's templates in memory."""
    has_place = "/" in file or "\\" in file or file.endswith((".py", ".pyw"))
    return has_place and _TEMPLATES.search(file) is None


def absolute(file: str, paths: CodePaths) -> str:
    """The file with the working folder before it where it is relative. Text only: the process may have run
    elsewhere."""
    path = file.replace("\\", "/") if "\\" in paths.working else file
    if path.startswith("/") or path[1:2] == ":" or not paths.working:
        return path
    return f"{paths.working.rstrip('/')}/{path}"


def relative_places(file: str, paths: CodePaths) -> tuple[str, ...]:
    """The file relative to the longest root above it and to the working folder; as it is below none."""
    if file.startswith("<"):
        return (file,)
    path = absolute(file, paths)
    roots = (_longest_root(path, all_roots(paths)), _longest_root(path, (paths.working,)))
    places = tuple(dict.fromkeys(path[len(root) :].lstrip("/") for root in roots if root))
    return places or (path.lstrip("/"),)


def all_roots(paths: CodePaths) -> tuple[str, ...]:
    """Every folder that module names can be relative to."""
    return (*paths.roots, *paths.editable, *paths.site, *paths.stdlib)


def portable_path(file: str, paths: CodePaths) -> str:
    """The file without what differs between hosts: relative to its site-packages, standard library or
    program root. Below no known root: the last two parts."""
    if file.startswith("<"):
        return plain_cell(file)
    path = plain_cell(absolute(file, paths))
    for part in _INSTALLED_PARTS:
        if part in path:
            return path.rpartition(part)[2]
    root = _longest_root(path, all_roots(paths)) or _longest_root(path, (paths.working,))
    if root is not None:
        return path[len(root) :].lstrip("/")
    stdlib = _STDLIB_PART.search(path)
    if stdlib is not None:
        return path[stdlib.end() :]
    return "/".join(path.split("/")[-2:])


def module_name(file: str, paths: CodePaths) -> str:
    """The dotted name a file would be imported by: `app/web/__init__.py` -> `app.web`."""
    if file.startswith("<frozen "):
        return file[len("<frozen ") : -1]
    name = portable_path(file, paths).removesuffix(".py").removesuffix("/__init__")
    return name.replace("/", ".")


def _longest_root(path: str, roots: tuple[str, ...] | dict[str, Owner]) -> str | None:
    best: str | None = None
    for root in roots:
        if root and path.startswith(root) and (best is None or len(root) > len(best)):
            inside = path[len(root) :]
            if inside.startswith("/") or root.endswith("/"):
                best = root
    return best


@dataclass(frozen=True, slots=True, kw_only=True)
class CodePaths:
    """Folders of one process by what they hold. Absolute, without a trailing separator."""

    stdlib: tuple[str, ...] = ()
    site: tuple[str, ...] = ()
    """Installed packages: site-packages, dist-packages, the scripts folder of the environment."""
    editable: tuple[str, ...] = ()
    """Folders that a `.pth` file in `site` names: installed in place, so the program's own."""
    ours: tuple[str, ...] = ()
    """The package of loopcanary itself."""
    roots: tuple[str, ...] = ()
    """Entries of sys.path: what a module's name is relative to."""
    working: str = ""
    """The working folder; relative file names are relative to it."""
    main: str = ""
    """File of `__main__`: a path, or `<string>` and `<stdin>` for a program given in that way."""

    @classmethod
    def capture(cls) -> CodePaths:
        return cls.from_json(code_paths())

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> CodePaths:
        """The value of `facts.code_paths()`; unknown keys and values of a wrong type are left out,
        since the dict may come from another version's file."""
        known: dict[str, object] = {}
        for field in fields(cls):
            value = data.get(field.name)
            if field.name in ("working", "main"):
                known[field.name] = value if isinstance(value, str) else ""
            elif isinstance(value, (list, tuple)):
                known[field.name] = tuple(entry for entry in value if isinstance(entry, str) and entry)
        return cls(**known)  # type: ignore[arg-type]


@cache
def captured() -> CodePaths:
    """The paths of this process, as of the first call."""
    return CodePaths.capture()


_ENGINES = (
    # Files that call the code, and what its outermost functions are called.
    (frozenset({"jinja2/environment.py", "jinja2/runtime.py"}), re.compile(r"root$|block_")),
    (frozenset({"mako/runtime.py", "mako/template.py"}), re.compile(r"render_|_mako_")),
)
_IN_A_MODULE = re.compile(r"render_body$|_mako_")
"""What Mako alone names so, in the modules that it keeps of templates: `orders.py` of a template `orders`."""


def is_of_template(file: str, qualname: str, callers: Iterable[str]) -> bool:
    """Whether a function is a template's. `callers`: the files of the frames outside of it."""
    name = qualname.partition(".")[0]
    if _can_be_imported(file) and not _IN_A_MODULE.match(name):
        return False
    engines = [files for files, names in _ENGINES if names.match(name)]
    return bool(engines) and any(tail(caller) in files for caller in callers for files in engines)


def _can_be_imported(file: str) -> bool:
    """By its name: Mako keeps a template `orders.page` as `orders.page.py`, which no `import` finds."""
    module, _, suffix = file.replace("\\", "/").rpartition("/")[2].rpartition(".")
    return suffix in ("py", "pyw") and "." not in module

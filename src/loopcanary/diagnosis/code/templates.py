"""Code that Jinja2 or Mako made of a template: known by its name and who called it, not by its file."""

from __future__ import annotations

import re
from collections.abc import Iterable

from loopcanary.model.loop_frames import tail

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

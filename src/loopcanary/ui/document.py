"""Pages as one file that needs nothing else: to be mailed, or kept with a run of CI."""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from urllib.parse import quote

from markupsafe import Markup

from loopcanary.late_dataclass import dataclass
from loopcanary.ui.pages.calls import CallsPage
from loopcanary.ui.pages.report import ReportPage
from loopcanary.ui.rendering import STATIC, Renderer


def document(page: ReportPage | CallsPage, folder: str, made_by: str = "loopcanary") -> bytes:
    """The page as HTML, in UTF-8, with paths relative to the folder. `made_by` is program and version."""
    # No editor: the reader may not have the files.
    html = Renderer(folder=folder, editor="").page(
        f"one_file/{'calls' if isinstance(page, CallsPage) else 'report'}.html",
        page=page,
        maker=made_by,
        bundle=bundle(),
        icon="data:image/svg+xml," + quote((STATIC / "icon.svg").read_text(encoding="utf-8")),
        now_wall_ns=page.generated_wall_ns,
    )
    # Undecodable names have lone surrogates, which UTF-8 has not.
    return html.encode("utf-8", "backslashreplace")


_STYLES = ("vendor/d3-flamegraph.css", "vendor/uPlot.min.css", "loopcanary.css", "report.css")
_LIBRARIES = ("vendor/uPlot.iife.min.js", "vendor/d3-selection.min.js", "vendor/d3-flamegraph.min.js")
_MODULES = ("charts.js", "flames.js", "range.js", "waterfall.js", "report.js")
"""In the order of their imports."""
LICENCES = ("uplot", "d3-selection", "d3-flame-graph")

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./[\w.-]+";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=function (\w+))", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    style: Markup
    scripts: tuple[Markup, ...]
    licences: tuple[tuple[str, str], ...]
    """Each library with its licence, which goes with every copy."""
    content_policy: str
    """The policy that allows these styles and scripts only, and nothing to be loaded, sent or framed."""


@cache
def bundle() -> Bundle:
    """The styles and scripts of the report, as they are sent by the server.

    Within a page no module can import another by its address: each module of ours becomes a function that
    gives what it exports.
    """
    style = "\n".join(_read(name) for name in _STYLES)
    scripts = [_read(name) for name in _LIBRARIES]
    scripts.append('"use strict";\n' + "\n".join(_as_function(_read(name)) for name in _MODULES))
    allowed = " ".join(_hash_of(script) for script in scripts)
    return Bundle(
        style=_within("style", style),
        scripts=tuple(_within("script", script) for script in scripts),
        licences=tuple((name, _read(f"vendor/{name}.LICENSE")) for name in LICENCES),
        content_policy=(
            f"default-src 'none'; script-src {allowed}; style-src {_hash_of(style)}; img-src data:; "
            "base-uri 'none'; form-action 'none'"
        ),
    )


def _read(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def _as_function(module: str) -> str:
    exported = ", ".join(_EXPORT.findall(module))
    body = _EXPORT.sub("", _IMPORT.sub("", module))
    given = f"const {{ {exported} }} = " if exported else ""
    return f"{given}(() => {{\n{body}return {{ {exported} }};\n}})();"


def _hash_of(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _within(element: str, text: str) -> Markup:
    """The text of an element whose contents are not markup. ValueError: the text would end it."""
    if re.search(rf"</{element}|<!--", text, re.IGNORECASE):
        raise ValueError(f"a {element} of the package has what ends it")
    return Markup(text)  # noqa: S704 - files of this package

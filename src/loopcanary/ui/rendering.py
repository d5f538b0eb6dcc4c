"""Templates, and the words and shapes they use. All text is escaped; names of programs are made printable."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from loopcanary.document import html
from loopcanary.document.stacks import Fold
from loopcanary.document.surroundings import LEDGER_LEAST
from loopcanary.document.times import age, moment, span
from loopcanary.model import Cause, Culprit, FrameSlice
from loopcanary.model.units import format_duration, format_length, format_number, format_size
from loopcanary.protocols.kinds import issues_title, kind_named, kind_of
from loopcanary.report.figures.loop_figures import stalled_share
from loopcanary.ui import drawing
from loopcanary.ui.pages.code import CodeView
from loopcanary.ui.pages.overview import CauseTime
from loopcanary.ui.pages.trees import tree_of
from loopcanary.words import frames as frame_words
from loopcanary.words.causes import (
    cause_words,
    confidence_word,
    has_cause,
    no_line_words,
    severity_word,
    struck_words,
)
from loopcanary.words.commands import reading
from loopcanary.words.endings import killed_by_words
from loopcanary.words.text import count_of, library_path, place, printable
from loopcanary.words.traced import phase_words
from loopcanary.words.waiting import (
    contributor_words,
    did_words,
    held_in,
    holder_label,
    holder_words,
    scheduler_words,
    second_cause_words,
    share_words,
    state_words,
    target_words,
)

_FOLDER = Path(__file__).resolve().parent
STATIC = _FOLDER / "static"
_NAME_MAX = 100
_S = 1_000_000_000

EDITORS = {
    "vscode": "vscode://file{path}:{line}",
    "vscodium": "vscodium://file{path}:{line}",
    "cursor": "cursor://file{path}:{line}",
    "zed": "zed://file{path}:{line}",
    "pycharm": "pycharm://open?file={path}&line={line}",
    "sublime": "subl://open?url=file://{path}&line={line}",
    "emacs": "org-protocol://open-source?url=file://{path}&line={line}",
}
"""The addresses by which browsers open a place in an editor."""


class Renderer:
    def __init__(self, *, folder: str, editor: str) -> None:
        self._folder = folder
        self._editor = EDITORS.get(editor, editor)
        self._environment = Environment(
            loader=FileSystemLoader(_FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= _FILTERS | {
            "document": lambda document, level: Markup(html.render(document, folder, level=level)),  # noqa: S704 - it escapes
        }
        self._environment.globals |= _GLOBALS | {
            "place": self.place,
            "culprit_place": self.culprit_place,
            "editor": self.editor,
            "scheduler_words": lambda one: scheduler_words(one, folder),
        }

    def prepare(self) -> None:
        """Compiles all templates, so that the first page does not wait for that."""
        for template in self._environment.list_templates():
            self._environment.get_template(template)

    def page(self, template: str, **values: Any) -> str:
        return self._environment.get_template(template).render(**values)

    def parts(self, template: str, **values: Any) -> Iterator[str]:
        """The page piece by piece, if its values come one after another."""
        return self._environment.get_template(template).generate(**values)

    def place(self, file: str, line: int) -> str:
        """`path:line`, relative to the current folder if it is below it."""
        return printable(place(file, line, self._folder), 200)

    def culprit_place(self, culprit: Culprit | CodeView) -> str:
        """As `place`; a library's path is relative to the library folder."""
        return self.place(culprit.file if culprit.in_app else library_path(culprit.file), culprit.line)

    def editor(self, file: str, line: int) -> str | None:
        """The address by which an editor opens the line; None: it is not a file."""
        # Two slashes begin the name of another machine's file.
        if not file.startswith("/") or file.startswith("//") or len(file) > 4_000:
            return None
        path = quote(file.encode("utf-8", "replace"))
        return self._editor.replace("{path}", path).replace("{line}", str(max(line, 1)))


def name(text: str | None, limit: int = _NAME_MAX) -> str:
    """A name of the watched program, made safe and not too long."""
    return printable(text or "", limit)


def url(path: str, /, **parameters: Any) -> str:
    """An address of ours, without empty parameters."""
    pairs: list[tuple[str, str]] = []
    for key, value in parameters.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        pairs += [
            (key, str(one).encode("utf-8", "backslashreplace").decode())
            for one in values
            if one not in (None, "", False)
        ]
    return path + ("?" + urlencode(pairs) if pairs else "")


def here_with(asked: Any, /, **changed: Any) -> str:
    """The address of the list with some parameters changed."""
    kept: dict[str, Any] = {}
    for key, value in asked.multi_items():
        if key not in changed:
            kept.setdefault(key, []).append(value)
    return url("/groups", **kept, **changed)


def _advice(text: str) -> Markup:
    """A sentence whose backquoted parts are code."""
    parts = _micro(printable(text, 2_000)).split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else part for index, part in enumerate(parts)
    )


def _duration(ns: int) -> str:
    """A duration with the sign for micro, which a page's font has; 0 without a unit."""
    return _micro(format_duration(ns)) if ns else "0"


def _micro(text: str) -> str:
    return re.sub(r"(?<=[0-9]) us\b", " \u00b5s", text)


def _source(text: str) -> str:
    return printable(text.replace("\t", "    "), 2_000)


_HATCHED = frozenset(cause.value for cause in list(Cause)[1::2])
"""Every second cause is hatched, so that neighbours in a stack differ by more than colour."""


def _series(causes: Iterable[CauseTime]) -> list[dict[str, Any]]:
    """Stalled time by cause, in seconds and as a share of the time watched, for the chart."""
    return [
        {
            "label": one.cause,
            "hatched": one.cause in _HATCHED,
            "values": [round(share, 4) for share in one.shares],
            "seconds": [round(ns / _S, 4) for ns in one.cells_ns],
        }
        for one in causes
    ]


def _fps_series(slices: Sequence[FrameSlice]) -> dict[str, Any]:
    """Frames a second and lateness, slice by slice, for the chart."""
    return {
        "times": [round(one.began_wall_ns / _S, 3) for one in slices],
        "series": [
            {"label": "fps", "values": [round(one.figures.fps, 2) for one in slices]},
            {"label": "worst frame ms", "values": [round(one.figures.worst_ns / 1e6, 1) for one in slices]},
        ],
    }


def _iso(wall_ns: int) -> str:
    try:
        return datetime.fromtimestamp(wall_ns // _S, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return ""


def _data(value: Any) -> Markup:
    """JSON for a `script` of a page, which it cannot end."""
    text = json.dumps(value, separators=(",", ":"))  # ASCII only
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))  # noqa: S704


_FILTERS: dict[str, Any] = {
    "name": name,
    "kind": lambda kind: kind_named(kind).words,
    "has_cause": has_cause,
    "named": lambda text, limit: name(text, limit) or "(no name)",
    "text": lambda text: printable(text, 2_000),
    "duration": _duration,
    "length_if_any": lambda ns: _micro(format_length(ns)),
    "number": format_number,
    "size": format_size,
    "share": share_words,
    "moment": moment,
    "iso": _iso,
    "data": _data,
    "advice": _advice,
    "source": _source,
    "sentence": lambda text: text[:1].upper() + text[1:],
    "arrows": lambda text: text.replace(" -> ", " \u2192 "),
    "series": _series,
    "fps_series": _fps_series,
}
_GLOBALS: dict[str, Any] = {
    "url": url,
    # Whether a process of another host has ended cannot be known here.
    "this_host": platform.node(),
    "here_with": here_with,
    "count_of": count_of,
    "age": age,
    "span": span,
    "cause_words": cause_words,
    "no_line_words": no_line_words,
    "struck_words": struck_words,
    "severity_word": severity_word,
    "LEDGER_LEAST": LEDGER_LEAST,
    "state_words": state_words,
    "killed_by_words": killed_by_words,
    "stalled_share": stalled_share,
    "confidence_word": confidence_word,
    "second_cause_words": second_cause_words,
    "holder_label": holder_label,
    "holder_words": holder_words,
    "target_words": target_words,
    "contributor_words": lambda one: _micro(contributor_words(one)),
    "library_path": library_path,
    "is_found_early": lambda issue: kind_of(issue).is_found_early,
    "evidence_of": lambda issue: kind_of(issue).all_evidence(issue),
    "held_in": held_in,
    "did_words": did_words,
    "reading": lambda command, folders: reading(command, map(Path, folders)),
    "is_fold": lambda row: isinstance(row, Fold),
    "spark_bars": drawing.spark_bars,
    "frame_words": frame_words,
    "issues_title": issues_title,
    "phase_words": phase_words,
    "tree_of": tree_of,
}

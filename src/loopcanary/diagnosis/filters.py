"""Which stalls are reported: the settings `only_concern` and `ignore`."""

from __future__ import annotations

from fnmatch import fnmatchcase

from loopcanary.diagnosis.code.code_paths import CodePaths
from loopcanary.diagnosis.code.ownership import Ownership, absolute, module_name
from loopcanary.model import Config, Culprit, Stall


def drop_reason(stall: Stall, config: Config, paths: CodePaths) -> str | None:
    """Why a stall is not reported. With `keep_ignored` it is stored all the same.

    Args:
        stall: With its culprit.
        config: Has `only_concern` and `ignore`.
        paths: Of the stall's process: which file is which module.

    Returns:
        `only_concern`, or `ignore: ` and the entry that matched; None: it is reported.
    """
    if config.only_concern and not _touches_own_code(stall):
        return "only_concern"
    if stall.culprit is None:
        return None
    for entry in config.ignore:
        if _matches(entry, stall.culprit, paths):
            return f"ignore: {entry}"
    return None


def _touches_own_code(stall: Stall) -> bool:
    holder = stall.holder.culprit if stall.holder is not None else None
    return any(culprit is not None and culprit.in_app for culprit in (stall.culprit, holder))


def _matches(entry: str, culprit: Culprit, paths: CodePaths) -> bool:
    if "/" in entry or entry.endswith(".py"):
        return _matches_glob(entry, absolute(culprit.file, paths))
    module, _, function = entry.partition(":")
    if function:
        return _is_module(module, culprit, paths) and function in (culprit.qualname, culprit.function)
    return Ownership(paths).is_in(culprit.file, (f"/{entry.replace('.', '/')}",))


def _matches_glob(pattern: str, path: str) -> bool:
    """A pattern that does not begin at the root matches below any folder."""
    return fnmatchcase(path, pattern) or fnmatchcase(path, f"*/{pattern.removeprefix('./')}")


def _is_module(module: str, culprit: Culprit, paths: CodePaths) -> bool:
    name = module_name(culprit.file, paths)
    return name == module or name.endswith(f".{module}")

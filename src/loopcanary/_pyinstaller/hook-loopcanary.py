"""Names modules that are loaded by their names in `built_in`, where PyInstaller does not look."""

# ruff: noqa: N999 - PyInstaller finds a hook by this name

from __future__ import annotations

from PyInstaller.utils.hooks import collect_data_files, collect_submodules

_TOOLS = {
    "_bootstrap",
    "_pyinstaller",
    "bundles",
    "cli",
    "exporters",
    "importers",
    "pytesting",
    "top",
    "ui",
}
hiddenimports = collect_submodules("loopcanary", filter=lambda name: _TOOLS.isdisjoint(name.split(".")))
datas = collect_data_files("loopcanary", includes=["words/libraries/*.toml"])
# Of the tools; a program that uses one of them itself takes it along all the same.
excludedimports = ["click", "desktop_notifier", "rich"]

"""The stub of the extension says what is built: names, numbers of arguments, that nothing is left out."""

from __future__ import annotations

import ast
import re

import pytest

import loopcanary

native = pytest.importorskip("loopcanary._native", reason="needs the C core")

MORE_THAN_ANY_TAKES = [None] * 30
COUNTS = {"no": 0, "one": 1}
UNCHECKED = {"gc_stamp", "calls_on_start", "calls_on_enter", "calls_on_leave"}
"""Called for each collection or traced call: they look at their arguments and count none."""


def stub(tree) -> dict[str, ast.ClassDef]:
    text = (tree / "src/loopcanary/_native.pyi").read_text(encoding="utf-8")
    return {node.name: node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}


def functions(of: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in of.body if isinstance(node, ast.FunctionDef)}


def attributes(of: ast.ClassDef) -> set[str]:
    return {node.target.id for node in of.body if isinstance(node, ast.AnnAssign)}


def public(thing: object) -> set[str]:
    return {name for name in vars(thing) if not name.startswith("__")}


def arguments_taken(function) -> int:
    """By what the function says of too many; it does nothing before it has counted them."""
    with pytest.raises(TypeError) as refused:
        function(*MORE_THAN_ANY_TAKES)
    (count,) = re.findall(r"takes (?:exactly |at most )?(\w+) arguments?", str(refused.value))
    return COUNTS[count] if count in COUNTS else int(count)


def test_the_extension_has_the_stub_s_names(tree):
    described = stub(tree)["Native"]
    assert public(native) == set(functions(described)) | attributes(described)


def test_functions_take_as_many_arguments_as_the_stub_says(tree):
    described = functions(stub(tree)["Native"])
    said = {
        name: len(node.args.posonlyargs) + len(node.args.args) - 1
        for name, node in described.items()
        if name not in UNCHECKED
    }
    assert {name: arguments_taken(getattr(native, name)) for name in said} == said


def test_types_have_the_stub_s_members(tree):
    types = {name: node for name, node in stub(tree).items() if name != "Native"}
    members = {
        name: {each for each in {*functions(node), *attributes(node)} if not each.startswith("__")}
        for name, node in types.items()
    }
    assert {name: public(getattr(native, name)) for name in types} == members


def test_the_stub_is_installed_beside_the_marker_of_types(package_path):
    assert (package_path / "loopcanary" / "_native.pyi").is_file()
    assert (package_path / "loopcanary" / "py.typed").is_file()
    assert loopcanary.__file__ is not None

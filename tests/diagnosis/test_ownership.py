"""Whose code a file is."""

from __future__ import annotations

import json

import pytest
from tests.diagnosis.cases import APP, PATHS, SITE, STDLIB

import loopcanary
from loopcanary.diagnosis.code.ownership import (
    CodePaths,
    Owner,
    Ownership,
    captured,
    module_name,
    portable_path,
)
from loopcanary.engine import drain
from loopcanary.facts import code_paths

PLACES = CodePaths(
    stdlib=("/usr/lib/python3.11",),
    site=("/srv/venv/lib/python3.11/site-packages", "/usr/lib/python3/dist-packages"),
    editable=("/home/u/shared/src",),
    ours=("/srv/venv/lib/python3.11/site-packages/loopcanary",),
    roots=("/srv/app", "/srv/app/plugins"),
    working="/srv",
    main="<string>",
)


@pytest.mark.parametrize(
    ("file", "owner"),
    [
        ("/srv/app/web/views.py", Owner.OWN),
        ("/elsewhere/tool.py", Owner.OWN),
        ("app/relative.py", Owner.OWN),
        ("/home/u/shared/src/shared/db.py", Owner.OWN),
        ("/srv/venv/lib/python3.11/site-packages/requests/api.py", Owner.INSTALLED),
        ("/usr/lib/python3/dist-packages/apt/cache.py", Owner.INSTALLED),
        ("/opt/other/site-packages/thing.py", Owner.INSTALLED),
        ("/usr/lib/python3.11/json/decoder.py", Owner.STDLIB),
        ("/usr/lib/python3.11/site-packages/late.py", Owner.INSTALLED),
        ("/opt/python/lib/python3.13/json/decoder.py", Owner.STDLIB),
        ("<frozen importlib._bootstrap>", Owner.STDLIB),
        ("<string>", Owner.OWN),
        ("<__array_function__ internals>", Owner.SYNTHETIC),
        ("<ipython-input-3-abc>", Owner.OWN),
        ("/srv/app/templates/orders.html", Owner.SYNTHETIC),
        ("templates/invoice.txt.j2", Owner.SYNTHETIC),
        ("/tmp/mako_modules/invoice.txt.py", Owner.SYNTHETIC),
        ("_invoice_txt", Owner.SYNTHETIC),
        ("memory:0x7f46a7902f90", Owner.SYNTHETIC),
        ("/srv/app/bin/serve", Owner.OWN),
        ("/srv/app/site.wsgi", Owner.OWN),
        ("/srv/venv/lib/python3.11/site-packages/loopcanary/engine/drain.py", Owner.OURS),
        ("/srv/venv/lib/python3.11/site-packages/loopcanary_plugin/x.py", Owner.INSTALLED),
    ],
)
def test_owner_by_place(file, owner):
    assert Ownership(PLACES).of(file) is owner


def test_without_any_known_path_the_usual_places_tell():
    ownership = Ownership(CodePaths())
    assert ownership.of(f"{SITE}/loopcanary/engine/drain.py") is Owner.OURS
    assert ownership.of(f"{SITE}/requests/api.py") is Owner.INSTALLED
    assert ownership.of(f"{STDLIB}/json/decoder.py") is Owner.STDLIB
    assert ownership.of(APP) is Owner.OWN


def test_text_given_on_the_command_line_is_own_only_there():
    assert Ownership(PATHS).of("<string>") is Owner.SYNTHETIC


@pytest.mark.parametrize(
    ("file", "owner"),
    [
        ("/srv/app/billing/tax.py", Owner.OWN),
        ("/srv/app/billing.py", Owner.OWN),
        ("/srv/app/billing_old.py", Owner.OTHER),
        ("/srv/app/web/views.py", Owner.OTHER),
        ("/srv/venv/lib/python3.11/site-packages/billing/x.py", Owner.OWN),
        ("/srv/venv/lib/python3.11/site-packages/requests/api.py", Owner.INSTALLED),
        ("/srv/app/shop/cart/total.py", Owner.OWN),
        ("/srv/app/shop/views.py", Owner.OTHER),
        ("/srv/app/billing/templates/bill.html", Owner.SYNTHETIC),
    ],
)
def test_owner_by_concern(file, owner):
    assert Ownership(PLACES, ("billing", "shop.cart")).of(file) is owner


def test_a_folder_above_the_root_is_no_package():
    paths = CodePaths(roots=("/app",), working="/app")
    assert Ownership(paths, ("app",)).of("/app/other.py") is Owner.OTHER
    assert Ownership(paths, ("app",)).of("/app/app/web.py") is Owner.OWN


@pytest.mark.parametrize(
    ("file", "path", "module"),
    [
        (APP, "app.py", "app"),
        (f"{SITE}/requests/__init__.py", "requests/__init__.py", "requests"),
        (f"{STDLIB}/json/decoder.py", "json/decoder.py", "json.decoder"),
        ("/somewhere/deep/pkg/mod.py", "pkg/mod.py", "pkg.mod"),
        ("/tmp/ipykernel_29256/2583480661.py", "ipykernel/2583480661.py", "ipykernel.2583480661"),
        ("<ipython-input-3-5d1e0f>", "<ipython-input-5d1e0f>", "<ipython-input-5d1e0f>"),
        ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>", "importlib._bootstrap"),
    ],
)
def test_names_that_do_not_depend_on_the_host(file, path, module):
    assert (portable_path(file, PATHS), module_name(file, PATHS)) == (path, module)


def test_paths_survive_json():
    assert CodePaths.from_json(json.loads(json.dumps(code_paths()))) == CodePaths.capture()


def test_a_damaged_dict_of_paths_is_read_as_far_as_it_is_sound():
    read = CodePaths.from_json({"stdlib": ["/a", 3, ""], "site": "x", "working": 4, "future": True})
    assert read == CodePaths(stdlib=("/a",))


def test_this_process_knows_its_own_places():
    ownership = Ownership(captured())
    assert ownership.of(json.__file__) is Owner.STDLIB
    assert ownership.of(pytest.__file__) is Owner.INSTALLED
    assert ownership.of(drain.__file__) is Owner.OURS
    assert ownership.of(loopcanary.__file__) is Owner.OURS
    assert ownership.of(__file__) is Owner.OWN


def test_folders_named_by_a_pth_file_are_own(tmp_path, monkeypatch):
    installed, source = tmp_path / "site-packages", tmp_path / "project" / "src"
    installed.mkdir()
    source.mkdir(parents=True)
    (installed / "win32").mkdir()
    (installed / "project.pth").write_text(f"# editable\nimport site\n{source}\nwin32\nmissing\n")
    monkeypatch.syspath_prepend(str(installed))
    assert str(source) in CodePaths.capture().editable
    assert not any("win32" in folder for folder in CodePaths.capture().editable)

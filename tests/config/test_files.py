from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from loopcanary.config import ConfigError, resolve
from loopcanary.config.files import find_settings_file


def write(folder, **texts):
    folder.mkdir(parents=True, exist_ok=True)
    for stem, text in texts.items():
        (folder / f"{stem}.toml").write_text(text)
    return folder


def threshold(folder):
    file = find_settings_file(folder)
    return None if file is None else file.settings.get("threshold")


def test_no_file_is_no_file(tmp_path):
    assert find_settings_file(tmp_path) is None or not Path(find_settings_file(tmp_path).path).is_relative_to(
        tmp_path
    )


def test_the_nearest_folder_upwards_wins(tmp_path):
    write(tmp_path, loopcanary='threshold = "1s"')
    write(tmp_path / "a", pyproject='[tool.loopcanary]\nthreshold = "2s"')
    assert threshold(write(tmp_path / "a" / "b" / "c")) == "2s"
    assert threshold(tmp_path) == "1s"


def test_in_one_folder_loopcanary_toml_wins_as_a_whole(tmp_path):
    write(tmp_path, loopcanary='name = "x"', pyproject='[tool.loopcanary]\nthreshold = "2s"')
    assert find_settings_file(tmp_path).settings == {"name": "x"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('[project]\nname = "x"', id="without a word of us"),
        pytest.param('[project]\ndependencies = ["loopcanary"]', id="with us as a dependency only"),
        pytest.param("this is no TOML", id="broken, without a word of us"),
    ],
)
def test_a_pyproject_without_our_table_is_passed_by(tmp_path, text):
    write(tmp_path, loopcanary='threshold = "1s"')
    assert threshold(write(tmp_path / "a", pyproject=text)) == "1s"


def test_an_empty_table_stops_the_search(tmp_path):
    write(tmp_path, loopcanary='threshold = "1s"')
    assert threshold(write(tmp_path / "a", pyproject="[tool.loopcanary]")) is None


def test_a_folder_of_that_name_is_no_file(tmp_path):
    (tmp_path / "a" / "loopcanary.toml").mkdir(parents=True)
    write(tmp_path, loopcanary='threshold = "1s"')
    assert threshold(tmp_path / "a") == "1s"


@pytest.mark.parametrize(
    ("stem", "content", "says"),
    [
        ("loopcanary", b"threshold = ", "is not valid TOML"),
        ("loopcanary", b'name = "\xff"', "is not valid TOML"),
        ("pyproject", b"[tool.loopcanary\n", "is not valid TOML"),
        ("pyproject", b'[tool]\nloopcanary = "x"', "write [tool.loopcanary]"),
        ("loopcanary", b"x = " + b"[" * 5_000, "is not valid TOML"),
    ],
)
def test_a_broken_file_is_one_line_with_its_path(tmp_path, stem, content, says):
    path = tmp_path / f"{stem}.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        find_settings_file(tmp_path)
    assert str(caught.value).startswith(str(path))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_broken_file_does_not_stop_production(tmp_path):
    write(tmp_path, loopcanary="threshold = ")
    assert resolve({"production": True}, {}, tmp_path).threshold_ns == 100_000_000


@pytest.mark.parametrize(
    ("stem", "text", "place"),
    [
        ("loopcanary", "threshold = 5", "threshold"),
        ("pyproject", "[tool.loopcanary]\nthreshold = 5", "tool.loopcanary.threshold"),
        ("loopcanary", '[tool.loopcanary]\nthreshold = "5s"', "tool"),
        ("pyproject", "[tool.loopcanary]\nconcern.app = 1", "tool.loopcanary.concern"),
    ],
)
def test_a_bad_value_is_placed(tmp_path, stem, text, place):
    path = tmp_path / f"{stem}.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        resolve({}, {}, tmp_path)
    assert caught.value.place == f"{path}: {place}"


def test_settings_without_a_file_cost_no_parser_and_no_logging(tmp_path, package_path):
    program = (
        "import sys, loopcanary.config as config; config.load(threshold='1s');"
        "print(*{'tomllib', 'logging', 'difflib', 'datetime'} & set(sys.modules))"
    )
    outcome = subprocess.run(
        [sys.executable, "-S", "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(package_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert outcome.stdout.strip() == ""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no pipes with names")
def test_a_pipe_is_not_waited_for(tmp_path):
    write(tmp_path, loopcanary='threshold = "1s"')
    (tmp_path / "a").mkdir()
    os.mkfifo(tmp_path / "a/loopcanary.toml")
    assert threshold(tmp_path / "a") == "1s"

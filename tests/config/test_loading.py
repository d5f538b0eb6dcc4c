from __future__ import annotations

import logging
from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopcanary import config as loading
from loopcanary.config import FIELDS, ConfigError, resolve, settings_as_environment
from loopcanary.model import Config
from loopcanary.model.config import AUTO, ENGINES, NATIVE, OFF, ON, PORTABLE
from loopcanary.model.units import parse_duration_ns, parse_size_bytes

_MS = 1_000_000


@pytest.fixture(autouse=True)
def _forget_what_was_logged():
    loading._logged.clear()


def settings(folder=None, environment=None, **keywords):
    return resolve(keywords, environment or {}, folder)


def complaint(folder=None, environment=None, **keywords):
    with pytest.raises(ConfigError) as caught:
        settings(folder, environment, **keywords)
    return caught.value


def test_without_any_source_every_setting_is_the_default():
    assert settings() == Config()


def test_every_field_of_config_is_in_the_table():
    assert [field.attribute for field in FIELDS] == list(Config.__annotations__)


@pytest.mark.parametrize(
    ("keyword", "variable", "file", "threshold_ms"),
    [
        pytest.param("1s", "2s", "3s", 1_000, id="a keyword beats the environment and the file"),
        pytest.param(None, "2s", "3s", 2_000, id="the environment beats the file"),
        pytest.param(None, None, "3s", 3_000, id="the file beats the default"),
        pytest.param(None, "", "3s", 100, id="an empty variable is the default, whatever the file says"),
        pytest.param("1s", "rubbish", "3s", 1_000, id="a value that is not in force is not judged"),
    ],
)
def test_the_highest_source_wins(tmp_path, keyword, variable, file, threshold_ms):
    (tmp_path / "loopcanary.toml").write_text(f'threshold = "{file}"')
    environment = {} if variable is None else {"LOOPCANARY_THRESHOLD": variable}
    assert settings(tmp_path, environment, threshold=keyword).threshold_ns == threshold_ms * _MS


@pytest.mark.parametrize(
    ("keywords", "attribute", "value"),
    [
        ({"threshold": timedelta(milliseconds=250)}, "threshold_ns", 250 * _MS),
        ({"retention": "3h"}, "retention", (3 * 3_600_000 * _MS, 1 << 30)),
        ({"retention": "500MB"}, "retention", (30 * 86_400_000 * _MS, 500_000_000)),
        ({"retention": " 1MiB , 7d"}, "retention", (7 * 86_400_000 * _MS, 1 << 20)),
        ({"console": True}, "console", ON),
        ({"console": "Off"}, "console", OFF),
        ({"console": "auto"}, "console", AUTO),
        ({"labels": {"stage": "test", "region": " eu "}}, "labels", (("stage", "test"), ("region", "eu"))),
        ({"labels": "stage=test, region=eu,"}, "labels", (("stage", "test"), ("region", "eu"))),
        ({"concern": ["app", " lib "]}, "concern", ("app", "lib")),
        ({"concern": "app, lib"}, "concern", ("app", "lib")),
        ({"concern": ()}, "concern", ()),
        ({"engine": PORTABLE}, "engine", PORTABLE),
        ({"engine": "native"}, "engine", NATIVE),
        ({"methods_ring": 4096}, "methods_ring", 4096),
        ({"methods_ring": "500MB"}, "methods_ring", 500_000_000),
        ({"name": "  "}, "name", None),
    ],
    ids=repr,
)
def test_a_keyword_is_taken(keywords, attribute, value):
    assert getattr(settings(**keywords), attribute) == value


@pytest.mark.parametrize(
    ("variable", "text", "attribute", "value"),
    [
        ("LOOPCANARY_THRESHOLD", "50ms", "threshold_ns", 50 * _MS),
        ("LOOPCANARY_CONCERN", "a, b,", "concern", ("a", "b")),
        ("LOOPCANARY_LOCKS", "Yes", "locks", True),
        ("LOOPCANARY_FOLLOW_CHILDREN", "off", "follow_children", False),
        ("LOOPCANARY_STALLS_PER_MINUTE", "7", "stalls_per_minute", 7),
        ("LOOPCANARY_ENGINE", "Portable", "engine", PORTABLE),
    ],
)
def test_a_variable_is_parsed(variable, text, attribute, value):
    assert getattr(settings(environment={variable: text}), attribute) == value


@pytest.mark.parametrize(
    ("keywords", "key", "says"),
    [
        pytest.param({"threshold": 100}, "threshold", 'such as "100ms"', id="a bare number has no unit"),
        pytest.param({"threshold": 0.1}, "threshold", 'such as "100ms"', id="a float has no unit"),
        pytest.param({"threshold": True}, "threshold", "has no unit", id="a boolean is no duration"),
        pytest.param(
            {"threshold": "100"}, "threshold", 'such as "100ms"', id="a number in quotes has no unit"
        ),
        pytest.param({"threshold": "0ms"}, "threshold", "write 1ms or more", id="zero is too short"),
        pytest.param({"threshold": timedelta(-1)}, "threshold", "too short", id="negative is too short"),
        pytest.param({"threshold": "1" * 400 + "s"}, "threshold", "too long", id="an endless one"),
        pytest.param({"threshold": "99999999d"}, "threshold", "too long", id="more than 64 bits"),
        pytest.param({"sample_delay": "100ms"}, "sample_delay", "not below the threshold", id="late delay"),
        pytest.param({"locks": "yes"}, "locks", "without quotes", id="text is no boolean in a keyword"),
        pytest.param({"stalls_per_minute": 0}, "stalls_per_minute", "1 or more", id="a count of none"),
        pytest.param({"stalls_per_minute": True}, "stalls_per_minute", "not a count", id="a boolean count"),
        pytest.param({"console": "loud"}, "console", "write auto, on or off", id="a console unheard of"),
        pytest.param({"retention": "soon"}, "retention", 'such as "30d, 1GiB"', id="no age and no size"),
        pytest.param({"retention": "1ms"}, "retention", "age of 1s or more", id="too short an age"),
        pytest.param({"retention": ""}, "retention", "not an age and a size", id="an empty retention"),
        pytest.param({"labels": "stage"}, "labels", "not part of a label", id="a label without a value"),
        pytest.param({"labels": {"a": 1}}, "labels", "not part of a label", id="a label with a number"),
        pytest.param({"labels": {"a": "b,c"}}, "labels", "not part of a label", id="a label with a comma"),
        pytest.param({"concern": 5}, "concern", "not a list of names", id="a number is no list"),
        pytest.param({"concern": ["a", ""]}, "concern", "not a name", id="an empty name in a list"),
        pytest.param({"ignore": ["a,b"]}, "ignore", "not a name", id="a name with a comma"),
        pytest.param({"store": ""}, "store", "not a path", id="an empty path"),
        pytest.param({"store": "a\0b"}, "store", "not a path", id="a path with NUL"),
        pytest.param({"name": "two\nlines"}, "name", "not one line", id="a name of two lines"),
        pytest.param({"engine": "fast"}, "engine", "auto, native, portable", id="an engine unheard of"),
        pytest.param({"treshold": "1s"}, "treshold", "did you mean threshold?", id="a misspelt keyword"),
        pytest.param({"Sample-Delay": "1s"}, "Sample-Delay", "mean sample_delay?", id="hyphens in a key"),
        pytest.param({"xyzzy": 1}, "xyzzy", "docs/reference/settings.md", id="nothing near"),
    ],
)
def test_a_bad_keyword_is_one_line_that_says_place_and_next_step(keywords, key, says):
    error = complaint(**keywords)
    assert (error.key, error.value, error.place) == (key, keywords[key], f"keyword {key}")
    assert str(error).startswith(f"keyword {key}: ")
    assert says in str(error)
    assert error.next_step in str(error)
    assert "\n" not in str(error)
    assert len(str(error)) < 250


def test_a_keyword_whose_repr_fails_is_named_by_its_type():
    class Hostile:
        def __repr__(self):
            raise RuntimeError

    assert "<Hostile>" in str(complaint(threshold=Hostile()))


def test_a_bad_variable_is_named():
    error = complaint(environment={"LOOPCANARY_LOCKS": "maybe"})
    assert error.place == "environment variable LOOPCANARY_LOCKS"
    assert "'maybe' is neither on nor off" in str(error)


def test_a_variable_that_looks_misspelt_is_logged_once(caplog):
    environment = {"LOOPCANARY_TRESHOLD": "1s", "LOOPCANARY_SOMETHING_ELSE": "1"}
    assert settings(environment=environment) == settings(environment=environment) == Config()
    assert [record.getMessage() for record in caplog.records] == [
        "environment variable LOOPCANARY_TRESHOLD: no such setting; did you mean LOOPCANARY_THRESHOLD?"
    ]


@pytest.mark.parametrize(
    ("folder_of_production", "environment", "keyword"),
    [
        pytest.param(True, {}, None, id="production in the file"),
        pytest.param(False, {"LOOPCANARY_PRODUCTION": "1"}, None, id="production in the environment"),
        pytest.param(False, {}, True, id="production as a keyword"),
    ],
)
def test_production_logs_bad_settings_once_and_goes_on(
    tmp_path, caplog, folder_of_production, environment, keyword
):
    (tmp_path / "loopcanary.toml").write_text(
        f'threshold = 100\nnonsense = 1\nname = "shop"\nproduction = {str(folder_of_production).lower()}\n'
    )
    with caplog.at_level(logging.WARNING, logger="loopcanary"):
        first = settings(tmp_path, environment, production=keyword)
        second = settings(tmp_path, environment, production=keyword)
    assert first == second == Config(name="shop", production=True)
    assert [record.name for record in caplog.records] == ["loopcanary"] * 2
    assert "loopcanary.toml: threshold: 100 has no unit" in caplog.text
    assert "loopcanary.toml: nonsense: no such setting" in caplog.text


def test_an_unreadable_production_is_an_error_and_not_a_yes():
    assert complaint(environment={"LOOPCANARY_PRODUCTION": "ja"}).key == "production"


def test_production_resets_a_late_sample_delay(caplog):
    config = settings(production=True, threshold="50ms", sample_delay="1s")
    assert (config.threshold_ns, config.sample_delay_ns) == (50 * _MS, None)
    assert "not below the threshold of 50ms" in caplog.text


def test_paths_start_where_they_are_written(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    (tmp_path / "loopcanary.toml").write_text('store = "stalls"')
    assert settings(tmp_path / "deep").store == str(tmp_path / "stalls")
    assert settings(tmp_path / "deep", store="stalls").store == str(tmp_path / "deep" / "stalls")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert settings(tmp_path, store="~/stalls").store == str(tmp_path / "home" / "stalls")


_DURATIONS = st.integers(100_000, 1 << 62)
_WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters=",="), min_size=1
)
_SWITCHES = [field.attribute for field in FIELDS if isinstance(field.default, bool)]
_LINES = st.none() | _WORDS
_NAMES = st.lists(_WORDS, max_size=3).map(tuple)


@given(
    st.builds(
        Config,
        threshold_ns=st.integers(1 << 50, 1 << 62),
        sample_delay_ns=st.none() | st.integers(100_000, 1 << 49),
        sample_interval_ns=_DURATIONS,
        store=st.none() | st.sampled_from(["/a/b", "/with space/x,y"]),
        name=_LINES,
        concern=_NAMES,
        ignore=_NAMES,
        methods=_NAMES,
        engine=st.sampled_from(ENGINES),
        stalls_per_minute=st.integers(1, 1 << 62),
        retention=st.tuples(st.integers(1_000_000_000, 1 << 52), st.integers(1, 1 << 62)),
        version=_LINES,
        console=st.sampled_from([AUTO, ON, OFF]),
        labels=st.dictionaries(_WORDS, _WORDS, max_size=3).map(lambda found: tuple(found.items())),
        **{switch: st.booleans() for switch in _SWITCHES},
    )
)
def test_a_child_reads_back_the_settings_of_its_parent(config):
    assert resolve({}, settings_as_environment(config), None) == config


def test_a_child_in_another_folder_is_not_swayed_by_a_file_there(tmp_path):
    (tmp_path / "loopcanary.toml").write_text('threshold = "9s"\nconcern = ["other"]\nsample_delay = "1ms"')
    assert settings(tmp_path, settings_as_environment(Config())) == Config()


def test_load_reads_the_process(tmp_path, monkeypatch):
    for field in FIELDS:
        monkeypatch.delenv(field.variable, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOOPCANARY_NAME", "shop")
    (tmp_path / "loopcanary.toml").write_text('version = "7"')
    config = loading.load(threshold="1s")
    assert (config.name, config.version, config.threshold_ns) == ("shop", "7", 1_000 * _MS)


@given(st.from_regex(r"[0-9]{1,20}(\.[0-9]{1,30})?", fullmatch=True, alphabet="0123456789."))
def test_fractions_are_exact_to_the_nearest_whole_number(number):
    assert parse_duration_ns(number + "h") == round(Fraction(number) * 3_600_000_000_000)
    assert parse_size_bytes(number + "KiB") == round(Fraction(number) * 1024)

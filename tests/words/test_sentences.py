"""Sentences: made from codes and values, kept as these, said anew from them."""

from __future__ import annotations

import ast
import copy
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loopcanary.diagnosis
from loopcanary.words import sentences
from loopcanary.words.sentences import TEMPLATES, coded, say, spoken

PACKAGE = Path(loopcanary.diagnosis.__file__).parents[1]
SAYING = sorted(path for part in ("diagnosis", "importers") for path in (PACKAGE / part).rglob("*.py"))
SOME = say("samples", count=9, whole=12)
EXAMPLES = [
    (SOME, "9 of 12 samples"),
    (say("samples", count=1, whole=1), "1 of 1 sample"),
    (say("call", call="time.sleep(0.3)"), "The innermost call was `time.sleep(0.3)`."),
    (say("slept", some=SOME, calls=["poll"], target=None), "9 of 12 samples slept in poll."),
    (
        say("slept", some=SOME, calls=["read", "poll", "futex"], target=say("with-peer", name="a:5432")),
        "9 of 12 samples slept in read, poll and futex with peer a:5432.",
    ),
    (say("ran", ran=41_200_000, whole=300_000_000), "The thread ran for 41.2 ms of 300 ms."),
    (say("also", cause="lock", share=0.256), "Also lock: 26 % of the time."),
    (say("faults", count=12_345), "12,345 pages had to be read from disk (major faults)."),
    (say("try:time.sleep", call=None).partition(" with")[0], "Replace the call"),
    (say("title:what", what=say("title:sleep"), place=None), "sleeping"),
]


def through_json(value):
    return spoken(json.loads(json.dumps(coded(value))))


@pytest.mark.parametrize(("sentence", "text"), EXAMPLES, ids=[text for _, text in EXAMPLES])
def test_a_sentence_is_the_text_of_its_code_and_values(sentence, text):
    assert sentence == text


def test_a_sentence_comes_back_from_a_store_with_its_values():
    said = say("slept", some=SOME, calls=["poll"], target=say("of-name", name="/x"))
    document = {"id": "s1-1", "title": said, "evidence": [said, "plain"], "advice": None}
    back = through_json(document)
    assert back == document
    assert back["evidence"][0].values["target"].code == "of-name"


def test_a_stored_sentence_is_said_in_the_words_of_today(monkeypatch):
    stored = json.dumps(coded({"title": say("title:sleep"), "evidence": [say("starting")], "advice": None}))
    monkeypatch.setattr(sentences, "TEMPLATES", {**TEMPLATES, "title:sleep": "asleep"})
    assert spoken(json.loads(stored)) == {
        "title": "asleep",
        "evidence": [TEMPLATES["starting"]],
        "advice": None,
    }


def test_stalls_stored_as_sentences_stay_as_they_are():
    old = {"title": "sleeping", "evidence": ["It slept."], "advice": "Wake up."}
    assert spoken(old) == old
    assert coded(old) == old


@pytest.mark.parametrize(
    "said",
    [["new-code", {"count": 3}], ["call", {"call": ["new-code", {}]}], [], "call", 7, None],
    ids=["a code of another version", "one inside another", "no code", "text", "a number", "nothing"],
)
def test_text_without_a_known_code_stays(said):
    assert spoken({"title": "as it was", "said": {"title": said}}) == {"title": "as it was"}


def test_a_value_that_is_not_there_is_a_question_mark():
    assert spoken({"title": "x", "said": {"title": ["faults", {}]}})["title"].startswith("? pages")


def test_copies_of_a_sentence_are_sentences():
    for again in (copy.copy(SOME), copy.deepcopy(SOME)):
        assert (again, again.code, again.values) == (SOME, SOME.code, SOME.values)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
        | st.tuples(
            st.sampled_from(sorted(TEMPLATES)), st.dictionaries(st.sampled_from(["some", "count"]), inner)
        ).map(list)
    ),
    max_leaves=20,
)


@given(JSON, JSON)
def test_no_document_is_too_strange_to_be_read(title, evidence):
    spoken(title)
    spoken({"title": "a", "evidence": ["b"], "advice": None, "said": {"title": title, "evidence": evidence}})
    spoken({"title": title, "evidence": evidence, "said": {"title": evidence, "evidence": [title]}})


def said_codes():
    """Every code that is a literal in a call of `say`, or stands for one in a table or a parameter."""
    found = set()
    for path in SAYING:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def test_every_template_is_used():
    used = said_codes()
    prefixes = ("drop-", "title:", "try:")
    assert {code for code in TEMPLATES if not code.startswith(prefixes)} <= used


def calls_of_say():
    for path in SAYING:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name("say"), args=[ast.Constant(str() as code)], keywords=keywords):
                    yield pytest.param(code, {word.arg for word in keywords}, id=f"{path.name}:{node.lineno}")


@pytest.mark.parametrize(("code", "values"), list(calls_of_say()))
def test_what_is_said_has_a_template_and_its_values(code, values):
    assert set(re.findall(r"\{(\w+)", TEMPLATES[code])) == values


@pytest.mark.parametrize("code", sorted(TEMPLATES))
def test_a_template_is_plain_english(code):
    template = TEMPLATES[code]
    assert not re.search(r"\b(whom|whoever|somebody|nobody|stands|stood|of it|so long|told)\b", template)
    assert template.count("`") % 2 == 0
    assert template == template.strip()

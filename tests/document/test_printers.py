"""One document, every printer: what each makes of the same blocks, and of hostile names in them."""

from __future__ import annotations

import re

import pytest

from loopcanary.document import html, markdown
from loopcanary.document.layout import Sheet, lines, painted
from loopcanary.document.makers import dim, facts, line, name, number, part, place_of, prose, said, sentences
from loopcanary.document.parts import (
    Bars,
    Document,
    Frames,
    Head,
    Heading,
    Indented,
    Items,
    Paragraph,
    Piece,
    Records,
    Share,
    Shares,
    SourceLine,
    Table,
    TableRow,
    Tone,
    Tree,
    TreeRow,
)
from loopcanary.document.wrapping import plain

PLACE = place_of("/srv/shop/orders.py", 87)
EVERYTHING = Document(
    (
        Heading(said(number("stall 412 ms"), "  ", name("load_orders"))),
        Indented(
            (
                line(PLACE, " in ", name("Orders.load")),
                SourceLine("rows = json.loads(body)", 8, 24),
                sentences("Words that are longer than the line is wide: 412 ms of 500 ms were spent here."),
                Items((said(prose("Use `json.loads` elsewhere.")),)),
                facts(("began", "at noon"), ("scene", None), ("held by", said("x at ", PLACE))),
                Shares("time", (Share("CPU", 0.5, Tone.GOOD, "█#"),), said("CPU 50 %")),
                Bars("course", (0.0, 0.5, 1.0), ("first", "last")),
            )
        ),
        Table(
            (Head("#", is_number=True), Head("cause"), Head("where", is_short_form=True)),
            (
                TableRow(
                    (said("1"), said("lock"), said(PLACE)), said("1. the first"), (line(dim("more of it")),)
                ),
                TableRow((said("12"), said("cpu"), said(PLACE))),
            ),
        ),
        Records(("", "what", "rate"), ((said("new"), said("a bug"), said("3 an hour")),)),
        *part("calls", [Tree(("took",), (TreeRow(("3 ms",), 1, said(name("f"))),))], is_aside=True),
        *part("nothing", []),
        *part("stack", [Frames((said(PLACE, " in f"), said(dim("2 frames in json"))))]),
    )
)

TEXT = """\
stall 412 ms  load_orders
   orders.py:87 in Orders.load
     rows = json.loads(body)
            ^~~~~~~~~~~~~~~~
   Words that are longer than the line is
   wide: 412 ms of 500 ms were spent here.
   - Use `json.loads` elsewhere.
   began    at noon
   held by  x at orders.py:87
   time     ########          CPU 50 %
   course    =@
            first last
 #  cause  where
 1  lock
   more of it
12  cpu    orders.py:87
new  a bug
   rate 3 an hour

calls
    took
    3 ms    f

stack
orders.py:87 in f
2 frames in json

"""

MARKDOWN = """\
## stall 412 ms  load\\_orders

`orders.py:87` in `Orders.load`

```python
rows = json.loads(body)
       ^~~~~~~~~~~~~~~~
```

Words that are longer than the line is wide: 412 ms of 500 ms were spent here.

- Use `json.loads` elsewhere.

- **Began**: at noon
- **Held by**: x at `orders.py:87`

- **Time**: CPU 50 %

| # | cause | where |
|---:|---|---|
| 1 | lock | `orders.py:87` |
| 12 | cpu | `orders.py:87` |

### 1. the first

more of it

|  | what | rate |
|---|---|---|
| new | a bug | 3 an hour |

<details><summary>Calls</summary>

```
    took
    3 ms    f
```

</details>

### Stack

```
> orders.py:87 in f
  2 frames in json
```
"""


def test_a_terminal_gets_lines_as_wide_as_it_is():
    sheet = Sheet(width=42, folder="/srv/shop", unicode=False)
    assert painted(lines(EVERYTHING, sheet)) == TEXT


def test_markdown_has_the_same_in_the_same_order():
    assert markdown.render(EVERYTHING, "/srv/shop") == MARKDOWN


def test_html_has_every_word():
    page = html.render(EVERYTHING, "/srv/shop")
    for words in (
        "<h2>",
        "orders.py:87",
        "<dt>began</dt>",
        "<code>json.loads</code>",
        "<details>",
        "3 an hour",
    ):
        assert words in page


def test_a_line_with_a_place_is_never_wrapped():
    document = Document((facts(("held by", said("x " * 40, PLACE))),))
    assert len(list(lines(document, Sheet(width=40)))) == 1


@pytest.mark.parametrize(
    "words", ["aaaa bbbb cccc dddd 100 %, 12 ms, 3.5 GiB", "some words before it takes 88 % of it, 2 m 5 s"]
)
def test_a_number_stays_with_its_unit(words: str):
    found = [plain(row)[9:] for row in lines(Document((facts(("around", words)),)), Sheet(width=40))]
    assert " ".join(found) == words
    assert not any(re.match(r"(%|ms|GiB|m|s)( |$)", row) for row in found[1:])


def test_colour_and_links_are_escape_sequences():
    text = painted(lines(Document((line(PLACE),)), Sheet(folder="/srv/shop")), colour=True, links=True)
    link = "\x1b]8;;file:///srv/shop/orders.py#87\x1b\\"
    assert text == f"{link}\x1b[36morders.py:87\x1b[0m\x1b]8;;\x1b\\\n"


HOSTILE = "<b>@all\x1b[2J\u202e`|*_\n"


@pytest.mark.parametrize("tone", list(Tone), ids=lambda tone: tone.value)
def test_no_name_gets_out_of_its_piece(tone: Tone):
    document = Document((Paragraph((Piece(HOSTILE, tone),)),))
    text = painted(lines(document, Sheet()))
    page = html.render(document)
    written = markdown.render(document)
    for found in (text, page, written):
        assert "\x1b" not in found
        assert "\u202e" not in found
        assert found.strip().count("\n") == 0
    assert "<b>" not in page
    if not written.startswith("`"):
        assert "<b>" not in written
        assert "@all" not in written
    assert "\n" not in plain((Piece(HOSTILE, tone),))

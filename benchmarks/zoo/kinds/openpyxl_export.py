"""A handler writes a table for a spreadsheet by openpyxl."""

from __future__ import annotations

import gc
import io

import openpyxl
from zoo.stage import measured, run, sized

EXPECT = {
    "cause": ["cpu"],
    "needs": ["openpyxl"],
    "advice": ["write_only", "process", "to_thread", "xlsxwriter"],
}


def book_of(count):
    book = openpyxl.Workbook()
    for number in range(count):
        book.active.append([number, "4711", 12.75])
    return book


def export(book):
    book.save(io.BytesIO())  # <- culprit


async def handler():
    with measured():
        export(BOOK)


if __name__ == "__main__":
    gc.disable()  # its collections are a kind of their own
    BOOK = book_of(sized(lambda count: export(book_of(count)), 0.6, start=100))
    run(handler)

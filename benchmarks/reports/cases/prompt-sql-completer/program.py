"""A small SQL shell on prompt_toolkit completes the columns of the tables that a statement names."""

from __future__ import annotations

import asyncio
import time

import sqlparse
from prompt_toolkit import PromptSession
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from sqlparse.sql import Identifier

COLUMNS = {
    "orders": ["id", "customer", "region", "placed", "total"],
    "customers": ["id", "name", "city", "since"],
}
SCRIPT = "\n".join(
    f"DELETE FROM orders WHERE region = {region} AND ("
    + " OR ".join(f"(id={n} AND total>{n})" for n in range(300))
    + ");"
    for region in range(7)
)


class ColumnCompleter(Completer):
    def __init__(self) -> None:
        self.asked = 0

    def get_completions(self, document: Document, event: CompleteEvent):
        self.asked += 1
        word = document.get_word_before_cursor()
        for table in self.tables(document.text_before_cursor):
            for column in COLUMNS[table]:
                if column.startswith(word):
                    yield Completion(column, start_position=-len(word), display_meta=table)

    def tables(self, text: str) -> list[str]:
        found = []
        for statement in sqlparse.parse(text):
            for token in statement.tokens:
                if isinstance(token, Identifier) and token.get_real_name() in COLUMNS:
                    found.append(token.get_real_name())
        return found


async def type_statement(keyboard) -> None:
    await asyncio.sleep(0.5)
    keyboard.send_text(f"\x1b[200~{SCRIPT} SELECT * FROM orders WHERE \x1b[201~")
    for key in "reg":
        await asyncio.sleep(1.5)
        keyboard.send_text(key)
    await asyncio.sleep(2)
    keyboard.send_text("\r")


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def main() -> None:
    late: list[float] = []
    completer = ColumnCompleter()
    with create_pipe_input() as keyboard, create_app_session(keyboard, DummyOutput()):
        session: PromptSession[str] = PromptSession("sql> ", completer=completer)
        typing = asyncio.create_task(type_statement(keyboard))
        beats = asyncio.create_task(heartbeat(late))
        statement = await session.prompt_async()
        await typing
        beats.cancel()
    print(f"{len(statement)} characters, ends with {statement[-7:]!r}, {completer.asked} completions")
    print(f"worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())

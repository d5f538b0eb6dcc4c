"""A front end to another interpreter: the bottom toolbar shows the type of what stands in the line."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

from prompt_toolkit import PromptSession
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

BACKEND = """
import ast, sys, time

for line in sys.stdin:
    time.sleep(0.3)  # it works a little on each question
    try:
        print(type(ast.literal_eval(line)).__name__, flush=True)
    except (SyntaxError, ValueError):
        print("?", flush=True)
"""


class Interpreter:
    def __init__(self) -> None:
        self.child = subprocess.Popen(
            [sys.executable, "-c", BACKEND], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def ask_type(self, expression: str) -> str:
        self.child.stdin.write(expression.replace("\n", " ") + "\n")
        return self.child.stdout.readline().strip()

    def close(self) -> None:
        self.child.stdin.close()
        self.child.wait()
        self.child.stdout.close()


class FrontEnd:
    def __init__(self, interpreter: Interpreter, keyboard: PipeInput) -> None:
        self.interpreter = interpreter
        self.known = {"": "-"}
        self.session: PromptSession[str] = PromptSession(
            input=keyboard, output=DummyOutput(), bottom_toolbar=self.show_toolbar
        )

    def show_toolbar(self) -> str:
        text = self.session.default_buffer.text
        if text not in self.known:
            self.known[text] = self.interpreter.ask_type(text)
        return f"type: {self.known[text]}"


async def heartbeat(late: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - began - 0.01)


async def type_keys(keyboard: PipeInput, text: str) -> None:
    for letter in text:
        await asyncio.sleep(0.4)
        keyboard.send_text(letter)


async def main() -> None:
    interpreter = Interpreter()
    late: list[float] = []
    with create_pipe_input() as keyboard:
        front = FrontEnd(interpreter, keyboard)
        beats = asyncio.create_task(heartbeat(late))
        for line in ("[1, 2]\n", "'abc'\n"):
            typing = asyncio.create_task(type_keys(keyboard, line))
            answer = await front.session.prompt_async("> ")
            await typing
            print(f"{answer}: {front.known.get(answer)}")
        beats.cancel()
    interpreter.close()
    print(f"{len(late)} ticks, worst tick {max(late) * 1000:.0f} ms")


if __name__ == "__main__":
    asyncio.run(main())

"""Whether the code that advice proposes can be written where it is to be: compiled there, never run."""

from __future__ import annotations

import ast
import re

_AWAITED = re.compile(r"`(await [^`]+)`")
_IN_COROUTINE = re.compile(r"In `(\w+)` \((\w+\.py):(\d+)\) use `(await [^`]+)`")
_IN_COROUTINE_ITSELF = re.compile(r"In `(\w+)` \((\w+\.py):(\d+)\), ")
_MADE_ASYNC = re.compile(r"[Mm]ake `(\w+)` an `async def`")
_NOT_WRITTEN_YET = "start a task"
"""The code goes into an `async def` that is yet to be written."""


def objection(advice: str, source: str, file: str, function: str, line: int) -> str | None:
    """Why its code cannot be written into the program with this culprit; None if it can, or has none."""
    said = _IN_COROUTINE.search(advice)
    if said is not None and said[2] == file:
        if why := _obstacle(source, said[1], int(said[3]), said[4]):
            return why
        if (call := _handed_over(said[4])) not in _called_at(source, int(said[3])):
            return f"line {said[3]} calls no {call}"
    rest = _IN_COROUTINE.sub("", advice)
    if _NOT_WRITTEN_YET in rest:
        return None
    itself, made = _IN_COROUTINE_ITSELF.match(rest), _MADE_ASYNC.search(rest)
    if itself is not None and itself[2] == file:
        function, line, made = itself[1], int(itself[3]), None
    elif made is not None and made[1] != function:
        return f"{made[1]} is not the culprit"
    obstacles = (
        _obstacle(source, function, line, code, made_async=made is not None)
        for code in _AWAITED.findall(rest)
    )
    return next(filter(None, obstacles), None)


def _obstacle(source: str, function: str, line: int, code: str, *, made_async: bool = False) -> str | None:
    writer = _With(function, line, code, made_async=made_async)
    try:
        compile(ast.fix_missing_locations(writer.visit(ast.parse(source))), "<program>", "exec")
    except SyntaxError as error:
        return f"{code}: {error.msg}"
    return None if writer.done else f"there is no {function} at line {line}"


class _With(ast.NodeTransformer):
    """A tree with code at the begin of a function, which may be made a coroutine."""

    def __init__(self, function: str, line: int, code: str, *, made_async: bool) -> None:
        self.function, self.line, self.made_async = function, line, made_async
        self.code = ast.parse(f"async def _():\n {code}").body[0].body  # type: ignore[attr-defined]
        self.done = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._written(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._written(node)

    def _written(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self.generic_visit(node)
        if node.name != self.function or not node.lineno <= self.line <= (node.end_lineno or 0):
            return node
        self.done = True
        node.body = [*self.code, *node.body]
        if self.made_async:
            return ast.AsyncFunctionDef(**{name: getattr(node, name) for name in node._fields}, lineno=0)
        return node


def _handed_over(code: str) -> str:
    """The function that a thread or process is to call."""
    call = ast.parse(f"async def _(): {code}").body[0].body[0].value.value  # type: ignore[attr-defined]
    given = next(one for one in call.args if ast.unparse(one) != "process_pool")
    return ast.unparse(given.args[0] if isinstance(given, ast.Call) else given)


def _called_at(source: str, line: int) -> set[str]:
    """What a line of the program calls."""
    calls = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.Call)]
    return {ast.unparse(one.func) for one in calls if one.lineno == line}

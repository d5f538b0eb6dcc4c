"""What the C compiler says of a header that files are read by: offsets and widths of fields, numbers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

_PROGRAM = """
#include <stddef.h>
#include <stdio.h>
#include "@HEADER@"
#define FIELD(s, f) printf("\\"%s.%s\\": [%zu, %zu],\\n", #s, #f, offsetof(s, f), sizeof(((s *)0)->f));
#define NUMBER(n) printf("\\"%s\\": %llu,\\n", #n, (unsigned long long)(n));
int main(void)
{
    printf("{");
@BODY@
    printf("\\"magic\\": \\"%s\\"}", @MAGIC@);
    return 0;
}
"""


def said_by_compiler(
    tree: Path, folder: Path, header: str, *, magic: str, records: Iterable[Any], numbers: Iterable[str]
) -> dict[str, Any]:
    """`record.field`: [offset, bytes]; each number by its name; `magic`. Skips where it cannot be asked."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not (tree / "native").exists():
        pytest.skip("no C compiler or no C sources: the header cannot be asked")
    lines = [f"FIELD({record.name}, {name})" for record in records for name in record.offsets]
    lines += [f"NUMBER({name})" for name in numbers]
    program = _PROGRAM.replace("@HEADER@", header).replace("@MAGIC@", magic)
    (folder / "facts.c").write_text(program.replace("@BODY@", "\n".join(lines)))
    command = [*compiler.split(), "-std=c11", f"-I{tree / 'native'}", "facts.c", "-o", "facts"]
    subprocess.run(command, cwd=folder, check=True)
    said = subprocess.run([folder / "facts"], check=True, capture_output=True).stdout
    return json.loads(said)  # type: ignore[no-any-return]


def said_by_reader(*, magic: bytes, records: Iterable[Any], numbers: dict[str, int]) -> dict[str, Any]:
    """The same of the Python side."""
    fields = {
        f"{record.name}.{name}": [offset, record.width(name)]
        for record in records
        for name, offset in record.offsets.items()
    }
    return fields | numbers | {"magic": magic.rstrip(b"\0").decode()}
